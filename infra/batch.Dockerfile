# A Python task on AWS Batch: the kit, the task's own requirements, and a user without rights.
ARG PYTHON=3.13
FROM public.ecr.aws/docker/library/python:${PYTHON}-slim

WORKDIR /var/task
COPY requirements.txt constraints.txt /tmp/
RUN pip install --no-cache-dir --disable-pip-version-check -r /tmp/requirements.txt -c /tmp/constraints.txt
COPY functions/ ./
RUN python -m compileall -q . && useradd --no-create-home --uid 10001 worker
USER worker
ENV PYTHONUNBUFFERED=1

# PID 1 gets SIGTERM when the job is to stop: no shell in between.
ENTRYPOINT []
CMD ["python", "-m", "taskrail.worker"]
