package databroker

import "strings"

// directory is a directory of a volume that a server keeps its data in. The server is
// stopped while it is copied for a backup, or replaced by a restore: its clients connect
// again.
type directory string

// script is a program that runs a server to its end, by a command that is announced and the
// signal that it ends well by. The directory is there already. A copy or a replacement is made whole
// next to its place.
func (d directory) script(command, signal string) string {
	return d.named(`rm -rf {d}.dumped
until [ -n "${stopped:-}" ]; do
rm -rf {d}.new {d}.copying {d}.copy
if [ -e {d}.restored ]; then
  rm -rf {d}.replaced
  [ ! -e {d} ] || mv {d} {d}.replaced
  mv {d}.restored {d}
  sync -f .
fi
rm -rf {d}.replaced
if [ -e {d}.wanted ]; then
  if cp -a {d} {d}.copying; then mv {d}.copying {d}.copy; else rm -rf {d}.copying; fi
  rm {d}.wanted
fi
`) + supervise(command, signal) + d.named(`[ -e {d}.restored ] || [ -e {d}.wanted ] || break
done
exit $code`)
}

func (d directory) named(text string) string { return strings.ReplaceAll(text, "{d}", string(d)) }

// dump writes a tar of a copy.
func (d directory) dump() string {
	return d.named(`cd ` + data + `
rm -rf {d}.dumped
touch {d}.wanted
` + stopUntilGone("{d}.wanted") + `
[ -e {d}.copy ] || { echo "there is no room for a copy" >&2; exit 1; }
mv {d}.copy {d}.dumped && tar -C {d}.dumped -cf - . && rm -rf {d}.dumped`)
}

// load unpacks a tar next to the directory, and waits until the server starts with it.
func (d directory) load() string {
	return d.named(`cd ` + data + `
rm -rf {d}.new {d}.dumped {d}.restored
mkdir -p {d}.new/content &&
cat > {d}.new/tar && [ "$(stat -c %s {d}.new/tar)" = "$2" ] &&
tar -C {d}.new/content -xf {d}.new/tar && rm {d}.new/tar && sync -f {d}.new &&
mv {d}.new/content {d}.restored && sync -f . || { rm -rf {d}.new; exit 1; }
rm -rf {d}.new
` + stopUntilGone("{d}.restored"))
}

// stopUntilGone stops the server and waits until the script has removed a file. A server that is
// just starting has written no ID yet. The file is looked for after the ID was read, so that the server
// that starts once it is gone is never stopped.
func stopUntilGone(file string) string {
	return `while [ -e ` + file + ` ]; do
  pid=$(cat ` + serverPID + ` 2>/dev/null)
  { [ ! -e ` + file + ` ] || kill -TERM $pid 2>/dev/null; } && break
  sleep 0.1
done
while [ -e ` + file + ` ]; do sleep 0.1; done`
}
