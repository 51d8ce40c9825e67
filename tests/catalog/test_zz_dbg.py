from tests.catalog.test_s3_pyiceberg import *
import pyiceberg.io.fsspec as f
orig=f.S3V4RestSigner.__call__
def call(self, request, **k):
    print("SIGN", request.method, request.url, dict(request.headers.items()))
    orig(self, request, **k)
    print("GOT", dict(request.headers.items()))
f.S3V4RestSigner.__call__=call
