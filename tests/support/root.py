"""Tests of what only root can do, such as becoming another user: run as root, they run; CI runs as root."""

import os

import pytest

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user or give files away")
