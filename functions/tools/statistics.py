"""Work in a container, in a language that is not Python: here a shell script and the image's own programs."""

from __future__ import annotations

from pydantic import BaseModel, Field

from taskrail import Batch, Toolset, hours, minutes, seconds

tools = Toolset()

# The image has nothing of the kit's in it: the script reports with curl. Its text comes as $1, never as a part of
# the script, so that nothing in it can run.
SCRIPT = r"""
set -eu
text=$1

report() {
  curl --silent --show-error --fail --retry 5 --retry-connrefused --max-time 20 \
    --header "Authorization: Bearer $TASKRAIL_REPORT_TOKEN" --header "Content-Type: application/json" \
    --data "{\"job\": \"$AWS_BATCH_JOB_ID\", \"attempt\": $AWS_BATCH_JOB_ATTEMPT, $1}" "$TASKRAIL_REPORT_URL"
}

progress() {
  echo "$2"
  answer=$(report "\"do\": \"progress\", \"done\": $1, \"total\": 3, \"message\": \"$2\"" | tr -d ' ')
  case $answer in *'"cancel":true'*) echo "told to stop"; exit 1 ;; esac
}

progress 0 "Counting lines"
lines=$(printf '%s\n' "$text" | awk 'END { print NR }')
progress 1 "Counting words"
words=$(printf '%s\n' "$text" | awk '{ words += NF } END { print words + 0 }')
progress 2 "Measuring lines"
longest=$(printf '%s\n' "$text" | awk 'length($0) > longest { longest = length($0) } END { print longest + 0 }')
report "\"do\": \"result\", \"result\": {\"lines\": $lines, \"words\": $words, \"longest_line\": $longest}" > /dev/null
"""


class Lines(BaseModel):
    """What is measured."""

    text: str = Field(
        max_length=4_000,
        description="The text. It travels in the job's description, which takes no more, and can be read there.",
    )


class Statistics(BaseModel):
    """What a text's lines are like."""

    lines: int
    words: int
    longest_line: int = Field(description="Length of the longest line, as the image's awk counts it.")


tools.container(
    "line_statistics",
    title="Line statistics",
    description="Count the lines and words of a short text in a container, and measure its longest line.",
    input=Lines,
    output=Statistics,
    image="public.ecr.aws/docker/library/buildpack-deps:bookworm-curl",
    command=["sh", "-c", SCRIPT, "line_statistics", "Ref::text"],
    log_lines=10,
    runs_on=Batch(vcpu=0.25, memory_mb=512, timeout=minutes(5), attempts=2),
    keep_result=hours(24),
    poll_interval=seconds(1),
)
