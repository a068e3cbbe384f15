package databroker

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/rootfs/volume"
	"cupola/store"
	"cupola/store/cf"
)

// holdTime is how long writers to a directory may have to wait while it is dumped.
const holdTime = time.Minute

// errOff says that nothing can be asked of instances.
var errOff = errors.New("the built-in service broker is off: an operator enables it with 'serve --data-services'")

// IsNotRunning reports whether an error says that a database does not run at the moment.
func IsNotRunning(err error) bool { return errors.Is(err, errNotRunning) }

// Used is how many bytes of disk the content of an instance takes.
func (s *Service) Used(instanceGUID string) (int64, error) {
	if s == nil {
		return 0, errOff
	}
	used, err := s.broker.Volumes.Used(instanceGUID)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // of a service that keeps no files
	}
	return used, err
}

// Dump writes the content of an instance as of one moment, and returns the version of
// the database that wrote it, "" for a directory.
func (s *Service) Dump(ctx context.Context, instanceGUID string, w io.Writer) (version string, err error) {
	if s == nil {
		return "", errOff
	}
	i, err := s.broker.ready(ctx, instanceGUID)
	if err != nil {
		return "", err
	}
	svc, _, _ := known(i)
	if svc.engine == nil {
		return "", s.broker.Volumes.Save(ctx, i.GUID, holdTime, w)
	}
	if err := svc.checkBackup(false); err != nil {
		return "", err
	}
	release, err := s.broker.turn(ctx, instanceGUID+"/dump") // two at once could take each other's file
	if err != nil {
		return "", err
	}
	defer release()
	version, err = s.broker.dump(ctx, i, svc.engine, w)
	return version, svc.withhold(err, "")
}

// CheckBackup refuses a backup, or a restore, of an instance whose service's file has no command for it.
func (*Service) CheckBackup(tx *store.Tx, instanceGUID string, restore bool) error {
	i, err := store.DataInstances.Find(tx, instanceGUID)
	if err != nil || i == nil {
		return err
	}
	svc, _, _ := known(i)
	return svc.checkBackup(restore)
}

func (s service) checkBackup(restore bool) error {
	switch {
	case s.engine == nil:
		return nil
	case s.engine.dump() == "":
		return cf.Unprocessable("%s has no backup command: its operator adds 'backup' to the service's file.", s.name)
	case restore && s.engine.load() == "":
		return cf.Unprocessable("%s has no restore command: its operator adds 'restore' to the service's file.", s.name)
	}
	return nil
}

// Load replaces the content of an instance by what Dump wrote, with the version that it
// returned: all of it or nothing. It may be asked again.
func (s *Service) Load(ctx context.Context, instanceGUID, version string, content *os.File) error {
	if s == nil {
		return errOff
	}
	release, err := s.broker.turn(ctx, instanceGUID)
	if err != nil {
		return err
	}
	defer release()
	i, err := s.broker.ready(ctx, instanceGUID)
	if err != nil {
		return err
	}
	svc, p, _ := known(i)
	if svc.engine == nil {
		err := s.broker.Volumes.Replace(ctx, i.GUID, volumeOf(svc, p), content)
		if errors.Is(err, volume.ErrInUse) {
			return errors.New("apps or tasks have the directory mounted: stop them first, or restore into another service instance")
		}
		return err
	}
	if err := svc.checkBackup(true); err != nil {
		return err
	}
	if err := s.broker.load(ctx, i, svc, version, content); err != nil {
		return svc.withhold(err, "")
	}
	return s.broker.answers(ctx, i, svc.engine)
}

// ready reads an instance that can be used.
func (b *broker) ready(ctx context.Context, guid string) (i *cf.DataInstance, err error) {
	err = b.Store.Read(ctx, func(tx *store.Tx) error {
		i, err = store.DataInstances.Get(tx, guid)
		return err
	})
	if err == nil && i.State != cf.DataReady {
		err = errNotRunning
	}
	return i, err
}

func (b *broker) dump(ctx context.Context, i *cf.DataInstance, e engine, w io.Writer) (version string, err error) {
	mark := rand.Text()
	err = b.attached(ctx, i, func(session io.ReadWriter) (err error) {
		r := bufio.NewReader(session)
		if version, err = readVersion(r); err != nil {
			return err
		}
		end := &ending{w: w}
		if _, err := io.Copy(end, r); err != nil {
			return err
		}
		return end.close(mark)
	}, dumpProgram(e), mark)
	return version, err
}

func (b *broker) load(ctx context.Context, i *cf.DataInstance, s service, version string, content *os.File) error {
	info, err := content.Stat()
	if err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	mark := rand.Text()
	return b.attached(ctx, i, func(session io.ReadWriter) error {
		r := bufio.NewReader(session)
		have, err := readVersion(r)
		if err != nil {
			return err
		}
		if !reads(have, version) || s.sameVersion && have != version {
			return fmt.Errorf("the backup is of %s, which %s of this service instance cannot read", version, have)
		}
		_, fault := io.Copy(session, content) // one that ended early says why
		said, err := io.ReadAll(io.LimitReader(r, maxSaid))
		end := &ending{w: io.Discard, held: said}
		return cmp.Or(end.close(mark), err, fault)
	}, loadProgram(s.engine), mark, strconv.FormatInt(info.Size(), 10))
}

// answers waits until a database answers, which may have to start first.
func (b *broker) answers(ctx context.Context, i *cf.DataInstance, e engine) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the server did not answer within %s of the restore", startTimeout))
	defer cancel()
	for {
		if err := b.execute(ctx, i, e.setUp()); err == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case <-time.After(betweenTry):
		case <-ctx.Done():
		}
	}
}

// dumpProgram writes a line with the version, what e dumps, and how that went after $1,
// which is not known before.
func dumpProgram(e engine) string {
	return "exec 3>&1\n" + e.version() + "\nif fault=$({\n" + e.dump() + "\n} 2>&1 >&3); then fault=" + succeeded + "; fi\n" + sayFault
}

// loadProgram writes a line with the version, loads the $2 bytes that it reads then, and
// writes how that went.
func loadProgram(e engine) string {
	return e.version() + "\nif fault=$(head -c \"$2\" | {\n" + e.load() + "\n} 2>&1); then fault=" + succeeded + "; fi\n" + sayFault
}

// succeeded is what a program says at its end that did what it should.
const (
	succeeded = "succeeded"
	sayFault  = `printf '\n%s %s' "$1" "$(printf '%s' "$fault" | tail -c 1000)"`
)

// maxVersion bounds the line with the version.
const maxVersion = 100

func readVersion(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n') // no more than r's buffer: what runs there may write without an end
	if err == io.EOF {
		return "", errCut
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("the line with the version of the server is longer than %d bytes", len(line))
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(line[:min(len(line), maxVersion)])), nil
}

// errCut says that a session ended before its program did.
var errCut = errors.New("the server's container ended meanwhile")

// ending writes all that it is given but for the end, which says how a program went.
type ending struct {
	w    io.Writer
	held []byte
}

// maxEnding bounds the end.
const maxEnding = 4 << 10

func (e *ending) Write(p []byte) (int, error) {
	e.held = append(e.held, p...)
	if n := len(e.held) - maxEnding; n > 0 {
		if _, err := e.w.Write(e.held[:n]); err != nil {
			return 0, err
		}
		e.held = append(e.held[:0], e.held[n:]...)
	}
	return len(p), nil
}

// close writes what comes before the end, and returns what that says.
func (e *ending) close(mark string) error {
	at := bytes.LastIndex(e.held, []byte("\n"+mark+" "))
	if at < 0 {
		return errCut
	}
	if _, err := e.w.Write(e.held[:at]); err != nil {
		return err
	}
	if said := string(e.held[at+len(mark)+2:]); said != succeeded {
		return errors.New(cmp.Or(strings.TrimSpace(said), "the server's client failed"))
	}
	return nil
}

// reads reports whether one version of a database reads what another one wrote: the
// same, and each later one.
func reads(reader, writer string) bool {
	product, have, _ := strings.Cut(reader, " ")
	of, want, _ := strings.Cut(writer, " ")
	return product == of && slices.Compare(numbers(have), numbers(want)) >= 0
}

func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		all = append(all, n)
	}
	return all
}
