#!/bin/sh
# Runs before the files are removed. dpkg says "remove", or "upgrade" and others if files of another version follow; rpm
# says how many versions remain.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then
  invoke=systemctl
  if command -v deb-systemd-invoke >/dev/null; then # Debian's, which asks the administrator's policy
    invoke=deb-systemd-invoke
  fi
  $invoke stop turnstile.socket turnstile.service turnstile-dashboard.service 'turnstile-elect@*.service' || true
fi
if command -v systemctl >/dev/null; then # a link to a unit that is gone would be an error at each start of the system
  systemctl --no-reload disable turnstile.socket turnstile.service turnstile-dashboard.service \
    turnstile-elect@.service || true
fi
