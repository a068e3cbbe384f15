package databroker

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Redis's log (AOF) is a snapshot, the base, and files of the commands since then, in which the server notes the time to the
// second. When it rewrites the log, it begins a new file of commands, makes a new base, and deletes what was before. Point-in-time
// recovery keeps hard links to all of them, so a base backup takes no more room than the log itself as long as that is in use. It
// has the log rewritten early, so that the server hardly ever does so by itself; if it does so twice before the files in between have links, all
// earlier points are deleted: the database's disk must not fill up.

// redisWake is a pipe: who opens it to write ends the wait of redisKeeper.
const redisWake = "/tmp/points"

// rewriteKB is how large a file of commands becomes, if the base is smaller, before the log is rewritten.
const rewriteKB = 64 << 10

// redisKeep links what is new in the log {aof}, whose files are numbered. Then it has the log rewritten, if that has doubled or the
// base is a day old, and deletes the oldest base backups, if there are too many, if what only they have takes more than {limit}
// kilobytes, or if the disk lacks the room for another base. After a failed rewrite it waits for a minute. The file cut says that the log
// did not go on from the one before.
const redisKeep = `{functions}
keep() {
  base= logs= log= first= gap=
  while read -r _ file _ number _ type _; do
    case $type in b) base=$file ;; i) logs="$logs $number:$file" log=$file first=${first:-$number} ;; esac
  done < {aof}/appendonly.aof.manifest
  [ -n "$base" ] && [ -n "$log" ] || return 1
  if [ /tmp/kept -nt {aof}/$log ] && [ /tmp/kept -nt {aof}/appendonly.aof.manifest ]; then return; fi
  : > /tmp/kept
  last=$(bases | tail -n 1)
  if [ -z "$last" ] || ! [ $last/base -ef {aof}/$base ]; then
    linked=$(ls -d ${last:-none}/log.* 2>/dev/null | tail -n 1)
    linked=${linked##*.}
    if [ -n "$linked" ] && [ ! -e {archive}/cut ] && [ $first -gt $((1$linked - 999999999)) ]; then
      echo "point-in-time recovery begins again: more was written within seconds than it can keep" >&2
      gap=yes
    fi
    rm -rf {archive}/new
    mkdir {archive}/new && ln {aof}/$base {archive}/new/base || return 1
    [ ! -e {archive}/cut ] || : > {archive}/new/cut
    last={archive}/$(next_base)
    mv -T {archive}/new $last && rm -f {archive}/cut && sync {archive} || return 1
    [ -z "$gap" ] || for old in $(bases); do [ $old = $last ] || rm -rf $old; done
    pause=0
  fi
  for one in $logs; do
    to=$last/log.$(printf %09d ${one%%:*})
    [ -e $to ] || ln {aof}/${one#*:} $to || return 1
  done
  sync $last
  size=$(du -k --apparent-size {aof}/$log | cut -f1)
  pause=$((pause - 1))
  if [ $pause -lt 0 ] && [ $size -gt 0 ] && { aged $last || { [ $size -gt {rewrite} ] && [ $size -gt $(du -k --apparent-size {aof}/$base | cut -f1) ]; }; }; then
    ask BGREWRITEAOF >/dev/null
    pause=12
  fi
  while [ $(bases | wc -l) -gt 1 ] && { [ $(bases | wc -l) -gt {bases} ] || [ $(du -sk {aof} {archive} | tail -n 1 | cut -f1) -gt {limit} ] ||
    [ $(df -k --output=avail . | tail -n 1) -lt $(du -sk {aof} | cut -f1) ]; }; do rm -rf "$(bases | head -n 1)"; done
}
`

// redisKeeper keeps points in time every few seconds, while that is enabled; a file of the log that was not written to costs it
// nothing more. Else it waits in the pipe. make_room lets a server start whose disk is full.
const redisKeeper = `configure() { [ "$(ask CONFIG SET aof-timestamp-enabled $1)" = OK ] && [ "$(ask CONFIG SET auto-aof-rewrite-percentage $2)" = OK ] && [ "$(ask CONFIG SET auto-aof-rewrite-min-size $3)" = OK ]; }
keeper() {
  set +e
  enabled= pause=0
  while :; do
    if [ -e {on} ]; then
      [ "$enabled" ] || { rm -f /tmp/kept; configure yes 150 128mb && enabled=yes; }
      [ ! "$enabled" ] || keep || rm -f /tmp/kept
      sleep 5
    else
      [ ! "$enabled" ] || configure no 100 64mb
      enabled=
      read -r _ < {wake}
    fi
  done
}
keeping() { [ ! -e {on} ] || echo --aof-timestamp-enabled yes --auto-aof-rewrite-percentage 150 --auto-aof-rewrite-min-size 128mb; }
make_room() {
  if [ -e {on} ] && [ $(df -k --output=avail . | tail -n 1) -le $(({limit} / 4)) ]; then
    echo "point-in-time recovery begins again: the disk is full" >&2
    rm -rf {archive}/{base}*
  fi
}
case $("$server" --version) in
  *v=[0-6].*) ;;
  *) rm -f /tmp/kept {wake} && mkfifo {wake} && { keeper & } ;;
esac
`

// redisRecover makes a log of a seed, next to its place: it is made again if it is interrupted. It has all of a file of commands but for
// what is later than {seed}/to, and no file after one of which it has not all.
const redisRecover = `recover() {
  check=$(command -v redis-check-aof || command -v valkey-check-aof)
  rm -rf {seed}/aof
  mkdir {seed}/aof && ln {seed}/base {seed}/aof/appendonly.aof.1.base.rdb || return 1
  echo 'file appendonly.aof.1.base.rdb seq 1 type b' > {seed}/aof/appendonly.aof.manifest
  number=0
  for log in {seed}/log.*; do
    [ -s "$log" ] || continue
    number=$((number + 1))
    name=appendonly.aof.$number.incr.aof
    line="file $name seq $number type i"
    cp "$log" {seed}/aof/$name && echo "$line" > {seed}/aof/check || return 1
    said=$("$check" --truncate-to-timestamp "$(cat {seed}/to)" {seed}/aof/check 2>&1) || true
    case $said in *'has nothing before timestamp'*) rm {seed}/aof/$name; break ;; esac
    echo "$line" >> {seed}/aof/appendonly.aof.manifest
    case $said in *'Successfully truncated'*) break ;; esac
  done
  rm -f {seed}/aof/check
}
if [ -e {seed} ] && [ ! -e {aof} ]; then
  recover
  sync -f .
  mv {seed}/aof {aof}
  sync -f .
fi
rm -rf {seed}
`

// redisEnable enables point-in-time recovery, and waits a while for the first base backup.
const redisEnable = `cd {data}
[ -p {wake} ] || { echo "it needs Redis 7 or a later version; restart a server that an earlier version of cupola started"; exit 1; }
mkdir -p {archive} && touch {on} && sync -f {archive} || exit 1
: 1<> {wake}
for try in $(seq 100); do
  ! ls -d {archive}/{base}* >/dev/null 2>&1 || break
  sleep 0.2
done`

const redisDisable = `cd {data} && rm -f {on} && rm -rf {archive} && sync -f .`

// redisArchiving is archiving with the names that only Redis has.
func redisArchiving(program string, p plan) string {
	own := strings.NewReplacer("{aof}", redisLog, "{wake}", redisWake, "{rewrite}", strconv.Itoa(rewriteKB), "{limit}", fmt.Sprint(p.volumeBytes>>10/4))
	return own.Replace(archiving(program))
}

func (redis) enableRecovery() string  { return redisArchiving(redisEnable, plan{}) }
func (redis) disableRecovery() string { return redisArchiving(redisDisable, plan{}) }

// seed copies a base and the files of commands since then. The log has times to the second, so a restore ends with the last whole
// second before the time.
func (redis) seed(s *seedWriter, base string, before time.Time) error {
	logs, err := redisLogs(s.root, base)
	if err != nil {
		return err
	}
	err = errors.Join(s.text(seedDir+"/to", fmt.Sprintln(before.Unix()-1)), s.file(base+"/base", seedDir+"/base"))
	for n, log := range logs {
		if err == nil {
			err = s.file(log, fmt.Sprintf("%s/log.%09d", seedDir, n+1))
		}
	}
	return err
}

// redisLogs are the files of commands since a base backup, in their order: its own, and those of the next base backup, which begin before
// the time in its name; of the last base backup, also those that keep has not linked yet. After a cut, the log is another one.
func redisLogs(root *os.Root, base string) (logs []string, err error) {
	names, err := namesIn(root, archiveDir)
	if err != nil {
		return nil, err
	}
	bases := slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, basePrefix) })
	logs, err = newerLogs(root, nil, base, "log.", "")
	at := slices.Index(bases, path.Base(base))
	if err != nil || at < 0 {
		return logs, err
	}
	next, cut, prefix, suffix := redisLog, archiveDir+"/cut", "appendonly.aof.", ".incr.aof"
	if at+1 < len(bases) {
		next = path.Join(archiveDir, bases[at+1])
		cut, prefix, suffix = next+"/cut", "log.", ""
	}
	if _, err := root.Lstat(cut); err == nil {
		return logs, nil
	}
	return newerLogs(root, logs, next, prefix, suffix)
}

// newerLogs adds to files of commands those of a directory that have greater numbers.
func newerLogs(root *os.Root, logs []string, dir, prefix, suffix string) ([]string, error) {
	last := 0
	if len(logs) > 0 {
		last = redisNumber(path.Base(logs[len(logs)-1]), "log.", "")
	}
	names, err := namesIn(root, dir)
	slices.SortFunc(names, func(a, b string) int { return redisNumber(a, prefix, suffix) - redisNumber(b, prefix, suffix) })
	for _, name := range names {
		if redisNumber(name, prefix, suffix) > last {
			logs = append(logs, path.Join(dir, name))
		}
	}
	return logs, err
}

// redisNumber is the number in the name of a file of commands, 0 in that of another file.
func redisNumber(name, prefix, suffix string) int {
	rest, is := strings.CutPrefix(name, prefix)
	text, ends := strings.CutSuffix(rest, suffix)
	n, err := strconv.Atoi(text)
	if !is || !ends || err != nil {
		return 0
	}
	return n
}
