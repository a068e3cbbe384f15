package databroker

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"cupola/store/cf"
)

// Point-in-time recovery keeps base backups, and the server's log since the first of them, in a directory of the volume.
const (
	archiveDir = "archive"
	// archiveOn is a file that is there while point-in-time recovery is enabled.
	archiveOn = archiveDir + "/on"
	// basePrefix comes before the number of a base backup, a dash and the time from which on it can be restored.
	basePrefix = "base-"
	baseTime   = "20060102T150405Z"
	// seedDir holds the files from which an instance is restored to a point in time.
	seedDir = "seed"
)

// maxBases bounds the base backups. One is made a day, so seven days can be restored.
const maxBases = 8

// recoverer is an engine whose instances can be restored to a point in time.
type recoverer interface {
	// enableRecovery is commands of the shell, which wait a while for the first base backup; those of disableRecovery delete all
	// that was kept. Both may be repeated.
	enableRecovery() string
	disableRecovery() string
	// seed copies what the script of a new instance recovers a time from.
	seed(s *seedWriter, base string, before time.Time) error
}

// archiveFunctions are functions of the shell: bases lists the base backups, the oldest first; ago is a time as their names have
// it; next_base is the name of the next one. Numbers order them, since the clock may be set back: aged reports whether the time at the end of
// a name is a day ago, or was taken before that.
const archiveFunctions = `bases() { ls -d {archive}/{base}* 2>/dev/null || true; }
ago() { date -u -d "$1" +%Y%m%dT%H%M%SZ; }
next_base() {
  number=$(bases | tail -n 1)
  number=${number##*/{base}}
  number=${number%%-*}
  printf '{base}%09d-%s' $((1${number:-000000000} - 999999999)) "$(ago '+1 second')"
}
aged() { [ "${1##*-}" \< "$(ago '-1 day')" ] || [ "${1##*-}" \> "$(ago '+1 minute')" ]; }
`

var archiveNames = strings.NewReplacer("{data}", data, "{archive}", archiveDir, "{on}", archiveOn, "{base}", basePrefix, "{seed}", seedDir, "{bases}", fmt.Sprint(maxBases),
	"{database}", database, "{owner}", owner)

// archiving puts the functions and the names in their places in a program of the shell.
func archiving(program string) string {
	return archiveNames.Replace(strings.ReplaceAll(program, "{functions}\n", archiveFunctions))
}

// setRecovery enables or disables point-in-time recovery of a running instance.
func (b *broker) setRecovery(ctx context.Context, i *cf.DataInstance, enabled bool) error {
	ctx, cancel := context.WithTimeout(ctx, statementsT)
	defer cancel()
	s, _, _ := known(i)
	r, ok := s.engine.(recoverer)
	if !ok {
		return fmt.Errorf("%s has no points in time", i.Service)
	}
	program := r.disableRecovery()
	if enabled {
		program = r.enableRecovery()
	}
	mark := rand.Text()
	return b.attached(ctx, i, func(session io.ReadWriter) error {
		said, err := io.ReadAll(io.LimitReader(session, maxSaid))
		if err != nil {
			return err
		}
		return (&ending{w: io.Discard, held: said}).close(mark)
	}, "if fault=$({\n"+program+"\n} 2>&1); then fault="+succeeded+"; fi\n"+sayFault, mark)
}
