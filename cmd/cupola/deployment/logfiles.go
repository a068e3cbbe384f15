package deployment

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// logDir is where the jobs of an instance write their logs, each in a directory.
const logDir = "/var/vcap/sys/log"

// download writes the log files of each instance that runs to an archive.
func (c *logsCmd) download(e *command.Env, api *capi.Client) error {
	for _, pattern := range c.Only {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("invalid --only %q: %w", pattern, err)
		}
	}
	all, err := instancesOf(e, api, c.Deployment, c.Instance)
	if err != nil {
		return err
	}
	to, err := findEntrance(e, api)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(i boshInstanceView) bool {
		_, err := i.process("")
		return err != nil
	})
	if len(all) == 0 {
		return errors.New("none of the instances runs: 'cupola deployment logs' without --dir shows what they wrote")
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	for _, i := range all {
		name := fmt.Sprintf("%s.%s.%d-%s.tgz", c.Deployment, i.Group, i.Index, time.Now().UTC().Format("20060102-150405"))
		file := filepath.Join(c.Dir, name)
		count, err := c.archive(e, to, i, file)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", i.name(), err), os.Remove(file))
		}
		fmt.Fprintf(e.Out, "%s: %s (%s)\n", i.name(), file, command.Counted(count, "file"))
	}
	return nil
}

// archive writes the log files of an instance: each job sees only its own, so that the
// container of a process of each job is entered.
func (c *logsCmd) archive(e *command.Env, to entrance, i boshInstanceView, file string) (count int, err error) {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	zipped := gzip.NewWriter(out)
	a := &logArchive{e: e, only: c.Only, to: tar.NewWriter(zipped)}
	for _, job := range i.runningJobs(c.Job) {
		err := withFiles(e, to, i, job, func(files *sftp.Client) error {
			a.files = files
			return a.add(job)
		})
		if err != nil {
			return 0, err
		}
	}
	return a.count, errors.Join(a.to.Close(), zipped.Close(), out.Close())
}

// runningJobs are the jobs with a running process, of those that are named, if any are.
func (i boshInstanceView) runningJobs(named []string) (jobs []string) {
	for _, p := range i.Processes {
		job, _, _ := strings.Cut(p.Name, "/")
		if p.State == "running" && !slices.Contains(jobs, job) && (named == nil || slices.Contains(named, job)) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// logArchive is an archive of log files.
type logArchive struct {
	e     *command.Env
	only  []string
	files *sftp.Client
	to    *tar.Writer
	count int
}

// add adds a file, or all files in a directory, by its path in logDir.
func (a *logArchive) add(name string) error {
	info, err := a.files.Lstat(path.Join(logDir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has no logs, or the file was rotated just now
	}
	if err != nil {
		return a.skip(name, err)
	}
	if info.Mode().IsRegular() {
		return a.addFile(name, info)
	}
	if !info.IsDir() {
		return nil
	}
	entries, err := a.files.ReadDir(path.Join(logDir, name))
	if err != nil {
		return a.skip(name, err)
	}
	for _, entry := range entries {
		if err := a.add(path.Join(name, path.Base(entry.Name()))); err != nil {
			return err
		}
	}
	return nil
}

// skip reports a file that could not be read.
func (a *logArchive) skip(name string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		fmt.Fprintf(a.e.Err, "%s/%s: skipped: %v\n", logDir, command.Printable(name), err)
		return nil
	}
	return fmt.Errorf("%s/%s: %w", logDir, name, err)
}

// addFile adds a file of the size that it has now; a process may write on.
func (a *logArchive) addFile(name string, info fs.FileInfo) error {
	if a.only != nil && !slices.ContainsFunc(a.only, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }) {
		return nil
	}
	from, err := a.files.Open(path.Join(logDir, name))
	if err != nil {
		return a.skip(name, err)
	}
	defer from.Close()
	head := &tar.Header{Name: "./" + name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime()}
	if err := a.to.WriteHeader(head); err != nil {
		return err
	}
	sent, err := io.CopyN(a.to, from, info.Size())
	if errors.Is(err, io.EOF) { // it was truncated meanwhile
		_, err = io.CopyN(a.to, zeros{}, info.Size()-sent)
	}
	a.count++
	return err
}

// zeros is a reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
