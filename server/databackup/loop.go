package databackup

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/server/databroker"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// Data is what the instances of the built-in broker hold.
type Data interface {
	// Used is how many bytes of disk the content of an instance takes.
	Used(instanceGUID string) (int64, error)
	// Dump writes the content, and returns the version of what wrote it. Load replaces it
	// by such a file, whole or not at all, and may be asked again.
	Dump(ctx context.Context, instanceGUID string, w io.Writer) (version string, err error)
	Load(ctx context.Context, instanceGUID, version string, content *os.File) error
}

// Config is what a Loop is made of.
type Config struct {
	Store *store.Store
	Blobs *blob.Store
	Data  Data
	Dir   string     // whose file system holds the blobs
	Keep  func() int // backups of an instance; the oldest beyond it are deleted
	Log   *slog.Logger

	Patience time.Duration // for a database that does not run at the moment; 0: a minute
}

const (
	patience   = time.Minute
	betweenTry = time.Second
	longest    = time.Hour // of a job
	maxJobs    = 2         // at a time: each keeps a processor busy
)

// Loop makes and restores backups.
type Loop struct {
	Config
	slots   chan struct{}
	workers sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool // jobs, by GUID
}

// New makes a Loop.
func New(c Config) *Loop {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Patience == 0 {
		c.Patience = patience
	}
	return &Loop{Config: c, slots: make(chan struct{}, maxJobs), busy: map[string]bool{}}
}

// Run works until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	const name = "service backups"
	defer l.workers.Wait()
	return store.Derive(store.As(ctx, name), l.Store, store.Derivation[[]*cf.Job]{Name: name, Read: look, Use: l.startAll, Log: l.Log})
}

// look finds the jobs that are not done.
func look(tx *store.Tx) ([]*cf.Job, error) {
	return store.Jobs.Where(tx, map[string][]string{"states": {string(cf.JobProcessing)}, "operations": {cf.JobBackupInstance, cf.JobRestoreInstance}})
}

func (l *Loop) startAll(ctx context.Context, jobs []*cf.Job) (next time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range jobs {
		if l.busy[j.GUID] {
			continue
		}
		l.busy[j.GUID] = true
		l.workers.Go(fault.Func("databackup", func() { l.work(ctx, j) }))
	}
	return next, nil
}

// work does a job and writes how it ended. A job that the end of ctx interrupts is done
// by the next Run.
func (l *Loop) work(ctx context.Context, j *cf.Job) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.busy, j.GUID)
	}()
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return
	}
	var w cf.DataWork
	err := json.Unmarshal([]byte(j.Input), &w)
	if err == nil {
		err = fault.Guard("databackup", func() error { return l.do(ctx, j, w) })
	}
	if ctx.Err() != nil {
		return
	}
	if err := l.Store.Write(ctx, func(tx *store.Tx) error { return end(tx, j, w, err) }); err != nil && ctx.Err() == nil {
		l.Log.ErrorContext(ctx, "end of a job was not written", "job_guid", j.GUID, "err", err)
	}
}

// do does a job. It waits for a database that does not run at the moment.
func (l *Loop) do(ctx context.Context, j *cf.Job, w cf.DataWork) error {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, errors.New("it took longer than "+longest.String()))
	defer cancel()
	for until := time.Now().Add(l.Patience); ; {
		err := l.once(ctx, j, w)
		if !databroker.IsNotRunning(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(betweenTry):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *Loop) once(ctx context.Context, j *cf.Job, w cf.DataWork) error {
	if j.Operation == cf.JobBackupInstance {
		return l.backup(ctx, w.Backup, "")
	}
	if err := l.backup(ctx, w.Safety, w.Backup); err != nil {
		return err
	}
	return l.restore(ctx, j.ResourceGUID, w.Backup)
}

// end writes how a job ended; err is nil if all went well.
func end(tx *store.Tx, j *cf.Job, w cf.DataWork, err error) error {
	now, gerr := store.Jobs.Get(tx, j.GUID)
	if gerr != nil || now.State != cf.JobProcessing {
		return gerr
	}
	now.State, now.Input = cf.JobComplete, ""
	state, description := cf.OpSucceeded, ""
	if err != nil {
		verb := "backup"
		if j.Operation == cf.JobRestoreInstance {
			verb = "restore"
		}
		state, description = cf.OpFailed, verb+" could not be completed: "+err.Error()
		// CC: errors/v2.yml, UnableToPerform
		now.State, now.Errors = cf.JobFailed, []cf.JobError{{Code: 10009, Title: "CF-UnableToPerform", Detail: description}}
		if err := dropUnfinished(tx, w); err != nil {
			return err
		}
	}
	if err := store.Jobs.Update(tx, now); err != nil || j.Operation == cf.JobBackupInstance {
		return err
	}
	i, err := store.ServiceInstances.Get(tx, j.ResourceGUID)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	i.LastOperation.State, i.LastOperation.Description, i.LastOperation.UpdatedAt = state, description, tx.Now
	return store.ServiceInstances.Update(tx, i)
}

// dropUnfinished deletes the rows of backups that were not made.
func dropUnfinished(tx *store.Tx, w cf.DataWork) error {
	for _, guid := range []string{w.Backup, w.Safety} {
		b, err := store.DataBackups.Get(tx, guid)
		if err == nil && b.State == cf.BackupProcessing {
			err = store.DataBackups.Delete(tx, guid)
		}
		if err != nil && !store.IsNotFound(err) {
			return err
		}
	}
	return nil
}
