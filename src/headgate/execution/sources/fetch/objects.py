"""Files of an object store below the connection's prefix that match a pattern."""

import hashlib
import re
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.external_systems.kinds import ObjectStore
from headgate.contracts.pipelines.steps import Land
from headgate.execution.sources.fetch.archives import unpacked
from headgate.execution.sources.fetch.bucket import Bucket, keyed
from headgate.execution.sources.fetch.downloads import Downloads, Terms
from headgate.execution.steps.context import Context, StepFailed, VolumeFile
from headgate.execution.steps.files import MAX_FILES, FetchedFiles, empty_folder, gathered, matches
from headgate.outgoing.client import Outgoing, StreamedResponse

AT_ONCE = 8
LISTED = 2_000_000
"""How many objects are looked at for those that a pattern names."""


def from_objects(step: Land, endpoint: Endpoint, context: Context, state: dict[str, Any] | None) -> FetchedFiles:
    """Download the matching files."""
    place = ObjectStore.model_validate(endpoint.config)
    bucket = Bucket(
        place.url, place.bucket, place.region, place.path_style, keyed(place.access_key_id, endpoint.secrets)
    )
    folder = empty_folder(step, context, "copies")
    outgoing = Outgoing(context.settings.outgoing)
    try:
        files = _listed(step, place, bucket, outgoing, context)
        downloads = Downloads(outgoing, Terms.of(context))

        def bring(file: VolumeFile) -> Any:
            url = bucket.url(_prefix(place) + file.path)
            name = f"{place.bucket}/{_prefix(place)}{file.path}"
            headers, judge = (lambda: bucket.headers(url)), _judge(bucket)
            return downloads.file(url, folder / file.id, headers=headers, name=name, judge=judge).path

        got = gathered(step, context, files, state, bring, at_once=AT_ONCE)
        got.files = unpacked(got.files, step.stream.files.format, folder, downloads.budget)
        return got
    finally:
        outgoing.close()


def _prefix(place: ObjectStore) -> str:
    return f"{place.prefix}/" if place.prefix else ""


def _listed(step: Land, place: ObjectStore, bucket: Bucket, outgoing: Outgoing, context: Context) -> list[VolumeFile]:
    pattern, before = step.stream.name.lstrip("/"), _prefix(place)
    files: list[VolumeFile] = []
    for number, entry in enumerate(bucket.objects(before + plain_part(pattern), outgoing)):
        if number % 1000 == 0:
            context.check_stopped()
        path = entry.key.removeprefix(before)
        if not entry.key.endswith("/") and matches(pattern, path):
            # Another content is another id, and so is the same under another name.
            told = f"{entry.key}\n{entry.tag}\n{entry.size}\n{entry.modified.isoformat()}"
            identifier = hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:24]
            files.append(VolumeFile(identifier, path, entry.size, entry.modified))
        if number >= LISTED or len(files) > MAX_FILES:
            told = f"{step.stream.name} matches more than {MAX_FILES:,} objects, or the prefix has more than {LISTED:,}"
            raise StepFailed("TOO_MANY_FILES", f"{told}; use a longer prefix, or a narrower pattern")
    return files


def plain_part(pattern: str) -> str:
    """The literal prefix of a pattern."""
    match = re.match(r"[^*?]*", pattern)
    return match[0] if match else ""


def _judge(bucket: Bucket) -> Any:
    def judged(answer: StreamedResponse) -> StepFailed | None:
        return None if answer.status == 404 else bucket.trouble(answer.status, "")

    return judged
