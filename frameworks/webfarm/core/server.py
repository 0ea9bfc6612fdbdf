"""What the farm asks of a web server, and Apache as one: how it runs as a task.  Pure.

Another server is a class with these two methods.
"""

from __future__ import annotations

import ipaddress
import shlex
from dataclasses import dataclass
from typing import Final, Protocol

from mesos_py import CommandInfo, HealthCheck, health_http, uri
from mesos_py.errors import InvalidValue

SITE: Final = ".served"
# Nobody may know yet that it is to end: others have to come, and the balancer to be told.
LINGER_S: Final = 3.0
# What a command exits with whose port somebody else has: errno's EADDRINUSE.
PORT_IN_USE: Final = 98
# Of archives the fetcher unpacks: docs/fetcher.md.
_ARCHIVES: Final = (
    *(".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz"),
    *(".tar.zst", ".tzst", ".zip"),
)


class Server(Protocol):
    def command(self, address: str, port: int, site: str) -> tuple[str, list[CommandInfo.URI]]:
        """The shell command that serves `site` at the port until SIGTERM, and for `LINGER_S`
        more, and then finishes what it has begun; and what is to be fetched before.  It exits
        with `PORT_IN_USE` when somebody else has the port.

        address: of the agent, as the balancer has it.  site: what was deployed ("": a page that
        the server brings itself).  Raises InvalidValue.
        """

    def health(self, port: int) -> HealthCheck:
        """What the agent asks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apache:
    """Apache 2.4 with the event module, in the foreground.

    check_path: what is asked of it to see whether it is well.
    check_s: how often.
    finish_s: after SIGTERM and `LINGER_S` it takes nothing new and finishes what is open, for
        so long.
    """

    check_path: str = "/"
    check_s: float = 2.0
    finish_s: float = 10.0

    def command(self, address: str, port: int, site: str) -> tuple[str, list[CommandInfo.URI]]:
        run = run_until_told('"$program" -DFOREGROUND -f "$PWD/.httpd.conf"', "WINCH")
        lines = [_FIND, site_lines(site), _config(self, listen_at(address, port)), run]
        return "\n".join(line for line in lines if line), site_uris(site)

    def health(self, port: int) -> HealthCheck:
        return health_http(
            port,
            self.check_path,
            delay_s=0,
            interval_s=self.check_s,
            timeout_s=max(5.0, self.check_s),
            grace_s=30,
            failures=3,
        )


def listen_at(address: str, port: int) -> str:
    """All addresses: the agent asks at loopback, the balancer at another one; where these are
    one, only that."""
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        loopback = False
    return f"127.0.0.1:{port}" if loopback else str(port)


def site_uris(site: str) -> list[CommandInfo.URI]:
    """What the agent fetches for a site: an archive, or nothing for a directory, which is
    used where it is.

    An archive is not kept by the agent for others: another content may come by its name.
    Raises InvalidValue for what is neither.
    """
    if not site or _is_directory(site):
        return []
    # Not a query or a checksum.
    name = site.partition("#")[0].partition("?")[0]
    if not name.endswith(_ARCHIVES):
        kinds = ", ".join(_ARCHIVES)
        raise InvalidValue("site", site, f"must be a directory (ends with /) or one of {kinds}")
    ending = next(each for each in _ARCHIVES if name.endswith(each))
    return [uri(site, output_file=f"{SITE}{ending}")]


def _is_directory(site: str) -> bool:
    return site.endswith("/")


def site_lines(site: str) -> str:
    """Shell lines that have the site in `$site`."""
    if not site:
        return f"""\
site=$PWD/{SITE}
mkdir -p "$site"
echo '<!DOCTYPE html><title>It serves</title><p>It serves, and has no site yet.' \\
  > "$site/index.html\""""
    if _is_directory(site):
        path = site.removeprefix("file://")
        return f"site={shlex.quote(path.rstrip('/') or '/')}"
    # What was unpacked, away from what the agent writes beside it; an archive of one
    # directory is that directory.
    return f"""\
site=$PWD/{SITE}
mkdir "$site"
for entry in *; do
  case $entry in stdout|stderr) ;; *) mv "$entry" "$site/" ;; esac
done
set -- "$site"/*
[ $# != 1 ] || [ ! -d "$1" ] || site=$1"""


_FIND: Final = """\
umask 022
PATH=$PATH:/usr/sbin:/sbin
program=$(command -v apache2 || command -v httpd) || {
  echo 'no apache2 or httpd on this agent' >&2
  exit 127
}
for modules in /usr/lib/apache2/modules /usr/lib64/httpd/modules /usr/lib/httpd/modules; do
  [ -d "$modules" ] && break
done
types=/etc/mime.types
[ -f "$types" ] || { types=$PWD/.mime.types; : > "$types"; }"""


def _config(apache: Apache, listen: str) -> str:
    return f"""\
cat > .httpd.conf <<END
ServerRoot "$PWD"
ServerName webfarm
Listen {listen}
PidFile "$PWD/.httpd.pid"
ErrorLog "||/bin/cat"
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule dir_module $modules/mod_dir.so
LoadModule mime_module $modules/mod_mime.so
TypesConfig $types
DocumentRoot "$site"
DirectoryIndex index.html
<Directory />
  AllowOverride None
  Options FollowSymLinks
  Require all denied
</Directory>
<Directory "$site">
  Require all granted
</Directory>
<FilesMatch "^\\.">
  Require all denied
</FilesMatch>
StartServers 1
KeepAlive Off
GracefulShutdownTimeout {max(1, round(apache.finish_s))}
END"""


def run_until_told(start: str, finish: str = "TERM") -> str:
    """Shell lines that run a server as `Server.command` has to.

    start: the command line, which serves in the foreground and says errors on stderr.
    finish: the signal on which it takes nothing new, finishes what is open, and ends.
    """
    # In a session of its own it does not get the agent's SIGTERM, on which it might drop what
    # is open.  `wait` ends with each signal, so it is asked until it is over.
    return f"""\
setsid {start} >&2 &
pid=$!
trap 'trap "" TERM; sleep {LINGER_S:g}; kill -{finish} $pid' TERM
wait $pid
code=$?
while kill -0 $pid 2>/dev/null; do
  wait $pid
  code=$?
done
[ $code = 0 ] || ! grep -qs 'Address already in use' stderr || code={PORT_IN_USE}
exit $code"""


__all__ = [
    "LINGER_S",
    "PORT_IN_USE",
    "SITE",
    "Apache",
    "Server",
    "listen_at",
    "run_until_told",
    "site_lines",
    "site_uris",
]
