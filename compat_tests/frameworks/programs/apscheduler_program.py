"""APScheduler: jobs in its store outlive the process that added them."""

import sys
import time
from datetime import datetime, timedelta

from apscheduler.jobstores.redis import RedisJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from place import client


def scheduler() -> BackgroundScheduler:
    store = RedisJobStore(connection_pool=client().connection_pool)
    return BackgroundScheduler(jobstores={"default": store}, timezone="UTC")


def say(text: str) -> None:
    print("job:", text, flush=True)


if __name__ == "__main__":
    import apscheduler_program

    chosen = scheduler()
    chosen.start(paused=sys.argv[1] == "add")
    if sys.argv[1] == "add":
        once = {"run_date": datetime.now().astimezone() + timedelta(seconds=0.5), "misfire_grace_time": None}
        chosen.add_job(apscheduler_program.say, "date", args=["once"], id="once", **once)
        chosen.add_job(apscheduler_program.say, "interval", seconds=0.3, args=["again"], id="again")
        assert sorted(job.id for job in chosen.get_jobs()) == ["again", "once"]
        chosen.shutdown()
        print("done", flush=True)
    else:
        while True:
            time.sleep(1)
