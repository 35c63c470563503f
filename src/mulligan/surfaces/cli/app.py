"""The program with all its commands, in the order in which `--help` lists them."""

from mulligan.surfaces.cli.application import app, config_app, state_app
from mulligan.surfaces.cli.commands import (
    configuring,
    looking,
    moving,
    ordering,
    starting,
    trying,
    working,
)

for command in (trying.demo, trying.simulate, starting.init, starting.rehearse):
    app.command()(command)
for command in (working.once, working.run, working.work, working.action):
    app.command()(command)
for command in (
    *(ordering.retry, ordering.fix, ordering.skip),
    *(ordering.abort, ordering.pause, ordering.resume),
):
    app.command()(command)
for command in (looking.status, looking.inspect, looking.prompt, looking.explain, looking.doctor):
    app.command()(command)
for command in (looking.stats, looking.events):
    app.command()(command)
app.command("check")(trying.check_here)
app.command()(trying.digest)
for command in (configuring.check, configuring.show, configuring.schema):
    config_app.command()(command)
for command in (moving.pull, moving.push, moving.copy):
    state_app.command()(command)

__all__ = ["app"]
