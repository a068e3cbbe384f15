package databroker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// archiveProgram is the file of the archive_command, which makes base backups, too: an idle server writes no log, and needs no
// new base backup.
const archiveProgram = "/tmp/archive"

// postgresArchive archives the segment $1, a path below the cluster, with the name $2. It makes a base backup if
// there is none or the last one is a day old, or if the archive is full: then the log before the new one can go. What would
// take the room that the database needs is deleted instead, since a server whose segments cannot be archived keeps them
// until its disk is full. After that it waits for a day.
const postgresArchive = `[ -e {on} ] || exit 0
umask 077
bin="/usr/lib/postgresql/$(cat pg/PG_VERSION)/bin"
{functions}
used() { du -sk {archive} | cut -f1; }
forget() {
  rm -rf {archive}/{base}* {archive}/wal {archive}/wal.new {archive}/new
  ago now > {archive}/paused
  echo "point-in-time recovery is paused for a day, and what it had is deleted: $1" >&2
  exit 0
}
make_base() {
  rm -rf {archive}/new
  "$bin/pg_basebackup" -h /tmp -w -D {archive}/new -Ft -z -X fetch -c fast --no-manifest &&
  tar --occurrence=1 -xzOf {archive}/new/base.tar.gz backup_label | sed -n 's/^START WAL LOCATION.*(file \(.*\))$/\1/p' > {archive}/new/start &&
  [ -s {archive}/new/start ] && sync -f {archive} && mv -T {archive}/new "{archive}/$(next_base)" && sync {archive}
}
drop_oldest() {
  rm -rf "$(bases | head -n 1)"
  first=$(cat "$(bases | head -n 1)/start")
  for file in {archive}/wal/*; do
    name=${file##*/}
    if [ "${name%.gz}" \< "$first" ]; then rm -f "$file"; fi
  done
}
if [ -e {archive}/paused ]; then
  aged "$(cat {archive}/paused)" || exit 0
  rm {archive}/paused
fi
mkdir -p {archive}/wal
[ -e {archive}/wal/$2.gz ] || { gzip -1 -c "pg/$1" > {archive}/wal.new && sync {archive}/wal.new && mv {archive}/wal.new {archive}/wal/$2.gz && sync {archive}/wal; } ||
  forget "there is no room for the log"
last=$(bases | tail -n 1)
if [ -z "$last" ] || aged "$last" || [ $(used) -gt {limit} ]; then
  [ "$(df -k --output=avail . | tail -n 1)" -gt "$(du -sk --exclude=pg_wal pg | cut -f1)" ] || forget "there is no room for a base backup"
  make_base || exit 0 # a server that stops makes none; the next segment tries again
fi
while [ $(bases | wc -l) -gt {bases} ] || { [ $(bases | wc -l) -gt 1 ] && [ $(used) -gt {limit} ]; }; do drop_oldest; done
[ $(used) -le {limit} ] || forget "it takes more than a quarter of the plan's disk"
`

// postgresRecover makes the cluster of a seed, next to its place: it is made again if it is interrupted. A log that ends before
// the time has nothing that was committed after it, so then all of it is replayed.
const postgresRecover = `recover() {
  rm -rf new
  mkdir new && tar -C new -xzf {seed}/base.tar.gz && touch new/recovery.signal && bin="/usr/lib/postgresql/$(cat new/PG_VERSION)/bin" || return 1
  server -D new -c listen_addresses= -c archive_mode=off -c recovery_target_timeline=current -c recovery_target_action=promote \
    -c restore_command='if [ -e {data}/{seed}/wal/%f.gz ]; then gzip -dc {data}/{seed}/wal/%f.gz > %p; else cp {data}/{seed}/pg_wal/%f %p 2>/dev/null; fi' "$@" 2> {seed}/log &
  pid=$!
  until [ "$("$bin/psql" -h /tmp -d postgres -XAtc 'SELECT pg_is_in_recovery()' 2>/dev/null)" = f ]; do
    kill -0 $pid 2>/dev/null || return 1
    sleep 0.2
  done
  kill -INT $pid
  wait $pid
}
if [ ! -e pg ] && [ -e {seed} ]; then
  recover -c recovery_target_time="$(cat {seed}/to)" ||
    { grep -q 'recovery ended before configured recovery target was reached' {seed}/log && recover; } || { tail -n 5 {seed}/log >&2; exit 1; }
  sync -f new
  mv new pg
  sync -f .
fi
rm -rf {seed}
`

// postgresEnable enables point-in-time recovery and waits a while for the first base backup, which the switch to another
// segment causes.
const postgresEnable = `cd {data}
umask 077
bin="/usr/lib/postgresql/$(cat pg/PG_VERSION)/bin"
ask() { "$bin/psql" -h /tmp -d postgres -XAtc "$1"; }
[ "$(ask 'SHOW archive_mode')" = on ] || { echo "the server was started by an earlier version of cupola: ask again once its container was restarted"; exit 1; }
mkdir -p {archive} && rm -f {archive}/paused && touch {on} && sync -f {archive} &&
ask "SELECT pg_create_restore_point('enabled'), pg_switch_wal()" >/dev/null || exit 1
for try in $(seq 100); do
  ! ls -d {archive}/{base}* >/dev/null 2>&1 || break
  sleep 0.2
done`

// postgresDisable deletes the archive.
const postgresDisable = `cd {data} && rm -f {on} && rm -rf {archive} && sync -f .`

// postgresDropUsers deletes the users of bindings: those of the instance that another one was restored from.
const postgresDropUsers = `\c {database}
SELECT unnest(ARRAY['REASSIGN OWNED BY ' || quote_ident(rolname) || ' TO {owner}', 'DROP OWNED BY ' || quote_ident(rolname), 'DROP ROLE ' || quote_ident(rolname)])
  FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, '{owner}', 'MEMBER') \gexec
\echo ` + done + `
\q
`

// postgresArchiver writes the program of the archive_command.
func postgresArchiver(p plan) string {
	program := strings.ReplaceAll(archiving(postgresArchive), "{limit}", fmt.Sprint(p.volumeBytes>>10/4))
	return "cat > " + archiveProgram + " <<'END'\ncd " + data + "\n" + program + "END\n"
}

func (postgres) enableRecovery() string  { return archiving(postgresEnable) }
func (postgres) disableRecovery() string { return archiving(postgresDisable) }

// seed copies a base backup and the segments of the log since then. What is not archived yet is copied first, since
// the server archives a segment of its log before it uses the file again.
func (postgres) seed(s *seedWriter, base string, before time.Time) error {
	first, err := firstSegment(s.root, base)
	if err != nil {
		return err
	}
	to := before.UTC().Format("2006-01-02 15:04:05.999999") + "+00\n"
	return errors.Join(s.directory(seedDir+"/pg_wal"), s.directory(seedDir+"/wal"), s.text(seedDir+"/to", to),
		s.segments("pg/pg_wal", seedDir+"/pg_wal", first), s.segments(archiveDir+"/wal", seedDir+"/wal", first),
		s.file(base+"/base.tar.gz", seedDir+"/base.tar.gz"))
}

// firstSegment reads with which segment the recovery of a base backup begins.
func firstSegment(root *os.Root, base string) (string, error) {
	f, _, err := openFile(root, base+"/start")
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSaid))
	return strings.TrimSpace(string(text)), err
}

// segments copies the segments of a directory from the first on. One that is gone meanwhile was archived before.
func (s *seedWriter) segments(from, to, first string) error {
	names, err := namesIn(s.root, from)
	if err != nil {
		return err
	}
	for _, name := range names {
		segment := strings.TrimSuffix(name, ".gz")
		if len(segment) != len(first) || segment < first {
			continue
		}
		if err := s.file(path.Join(from, name), path.Join(to, name)); ignoreMissing(err) != nil {
			return err
		}
	}
	return nil
}
