"""Tasks of Celery, with its transport for SQS."""
import os
import time

from celery import Celery

app = Celery("jobs", broker=os.environ["BROKER"])
app.conf.update(
    broker_transport_options={"is_secure": False, "region": "us-east-1", "visibility_timeout": 3600,
                              "wait_time_seconds": 1, "polling_interval": 0.1},
    task_default_queue="celery", worker_prefetch_multiplier=1, task_acks_late=True, task_ignore_result=True)

if "QUEUE_URL" in os.environ:  # the policy of this queue changes the visibility of a message whose task has failed
    app.conf.broker_transport_options["predefined_queues"] = {"patient": {
        "url": os.environ["QUEUE_URL"], "access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "backoff_policy": {1: 1, 2: 1, 3: 1}, "backoff_tasks": ["jobs.stubborn"]}}
    app.conf.update(task_default_queue="patient", task_acks_on_failure_or_timeout=False)


def note(text):
    with open(os.environ["NOTES"], "a", encoding="utf-8") as out:
        out.write(text + "\n")


@app.task
def add(a, b):
    note(f"add {a + b}")


@app.task(bind=True, max_retries=3)
def flaky(self):
    note(f"flaky {self.request.retries}")
    if self.request.retries < 2:
        raise self.retry(countdown=0)


@app.task
def fails():
    note("fails")
    raise ValueError("as it should")


@app.task
def stubborn():
    note("stubborn")
    with open(os.environ["NOTES"], encoding="utf-8") as notes:
        if notes.read().count("stubborn") < 3:
            raise ValueError("not yet")


@app.task
def slow():
    note("slow begins")
    time.sleep(1)
    note("slow ends")
