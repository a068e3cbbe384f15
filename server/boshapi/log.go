package boshapi

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cupola/rootfs/volume"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/director"
	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// logRequest says which logs a client wants. It is the ID of the resource that has them,
// encoded: the archive is made when it is downloaded.
type logRequest struct {
	Deployment string   `json:"d"` // GUID
	Group      string   `json:"g,omitempty"`
	Index      *int     `json:"i,omitempty"`
	GUID       string   `json:"u,omitempty"` // of the only instance
	Filters    []string `json:"f,omitempty"`
}

// fetchLogs records a task whose result is the ID of an archive of logs.
func fetchLogs(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	if kind := c.query("type"); !strings.Contains(","+kind+",", ",job,") && kind != "" && kind != "all" {
		return nil, refuse("cupola has no logs of agents and systems: leave out --agent and --system")
	}
	req := logRequest{Deployment: d.GUID}
	if text := c.query("filters"); text != "" {
		req.Filters = strings.Split(text, ",")
	}
	if req.Group, req.Index, err = c.named(d, c.param("group"), c.param("id")); err != nil {
		return nil, err
	}
	rows, err := req.instances(c.tx)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &refusal{http.StatusNotFound, 70001, "No instance matches: " + c.param("group") + "/" + c.param("id")}
	}
	var names []string
	for _, r := range rows {
		names = append(names, fmt.Sprintf("%s/%s (%d)", r.Group, r.GUID, r.Index))
	}
	return c.ended(director.Ended{Deployment: d.Name, Kind: director.FetchLogs, Result: req.id(), Events: events("Fetching logs for", names...)})
}

// id names what is wanted, for a download.
func (q logRequest) id() string {
	text, _ := json.Marshal(q) // texts and numbers have a JSON
	return base64.RawURLEncoding.EncodeToString(text)
}

// instances are those whose logs are wanted.
func (q logRequest) instances(tx *store.Tx) (all []*cf.BOSHInstance, err error) {
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", q.Deployment)
	for _, r := range rows {
		if (q.Group == "" || q.Group == r.Group) && (q.Index == nil || *q.Index == r.Index) && (q.GUID == "" || q.GUID == r.GUID) {
			all = append(all, r)
		}
	}
	return all, err
}

// logs returns what makes the archive that {id} describes: the files of one instance, or
// an archive of archives; nil if there is no such instance.
func (c *call) logs() (open func() (*os.File, error), err error) {
	var req logRequest
	text, err := base64.RawURLEncoding.DecodeString(c.param("id"))
	if err != nil || json.Unmarshal(text, &req) != nil {
		return nil, nil //nolint:nilerr,nilnil // documented
	}
	rows, err := req.instances(c.tx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return func() (*os.File, error) { return logPacker{c, req.Filters}.pack(rows) }, nil
}

// logPacker writes archives of the logs of instances.
type logPacker struct {
	*call
	filters []string // of names; none: all
}

// pack writes the archive to a file without a name.
func (p logPacker) pack(rows []*cf.BOSHInstance) (*os.File, error) {
	out, err := p.temporary()
	if err != nil {
		return nil, err
	}
	if len(rows) == 1 {
		err = p.packInstance(out, rows[0])
	} else {
		err = p.packAll(out, rows)
	}
	if err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

func (p logPacker) temporary() (*os.File, error) {
	f, err := os.CreateTemp(p.Temp, "logs-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// packAll writes an archive of the archives of instances.
func (p logPacker) packAll(out io.Writer, rows []*cf.BOSHInstance) error {
	zip := gzip.NewWriter(out)
	archive := tar.NewWriter(zip)
	for _, r := range rows {
		if err := p.addArchive(archive, r); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

func (p logPacker) addArchive(archive *tar.Writer, r *cf.BOSHInstance) (err error) {
	one, err := p.temporary()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	if err := p.packInstance(one, r); err != nil {
		return err
	}
	size, err := one.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	now := time.Now()
	name := fmt.Sprintf("./%s.%s.%s.tgz", r.Group, r.GUID, now.UTC().Format("2006-01-02-15-04-05"))
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: now}); err != nil {
		return err
	}
	if _, err := one.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(archive, one)
	return err
}

// packInstance writes an archive of what the processes of an instance wrote to their
// standard output and error, as bpm keeps it, and of the files in /var/vcap/sys/log. An
// instance that never ran has none.
func (p logPacker) packInstance(out io.Writer, r *cf.BOSHInstance) error {
	zip := gzip.NewWriter(out)
	archive := tar.NewWriter(zip)
	if err := p.addOutput(archive, r); err != nil {
		return err
	}
	name, dir := agent.LogVolume(r.GUID)
	files := packer{archive: archive, dir: dir, filters: p.filters, room: maxLogs}
	err := p.ReadVolume(name, func(root *os.Root) error { return files.pack(p.Request.Context(), root) })
	if err != nil && !errors.Is(err, volume.ErrNone) {
		return err
	}
	return errors.Join(archive.Close(), zip.Close())
}

// addOutput adds the lines that the daemon still has of an instance's processes and
// scripts, as JOB/PROCESS.stdout.log and JOB/PROCESS.stderr.log.
func (p logPacker) addOutput(archive *tar.Writer, r *cf.BOSHInstance) error {
	if p.Logs == nil {
		return nil
	}
	files := map[string]*bytes.Buffer{}
	index := strconv.Itoa(r.Index)
	for _, l := range p.Logs.Read(logcache.Query{SourceID: r.DeploymentGUID}) {
		if l.Tags["job"] != r.Group || l.Tags["index"] != index {
			continue
		}
		if name := outputFile(&l); name != "" && chosen(name, p.filters) {
			if files[name] == nil {
				files[name] = &bytes.Buffer{}
			}
			fmt.Fprintf(files[name], "%s\n", l.Payload)
		}
	}
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: "./" + name, Mode: 0o640, Size: int64(files[name].Len()), ModTime: now}); err != nil {
			return err
		}
		if _, err := files[name].WriteTo(archive); err != nil {
			return err
		}
	}
	return nil
}

// outputFile names the file that bpm would keep a line in; "" for a line that no program
// of the instance wrote.
func outputFile(l *logcache.Envelope) string {
	process, ok := strings.CutPrefix(l.Tags["source_type"], l.Tags["job"]+"/"+l.Tags["bosh_job"]+"/")
	if !ok || process == "" || strings.Contains(process, "/") {
		return ""
	}
	stream := "stdout"
	if l.Err {
		stream = "stderr"
	}
	return l.Tags["bosh_job"] + "/" + process + "." + stream + ".log"
}

// maxLogs bounds what is packed of one instance: a sparse file can be larger than its disk.
const maxLogs = 2 << 30

// packer adds the regular files of a directory that filters choose to an archive, as far
// as there is room.
type packer struct {
	archive *tar.Writer
	dir     string
	filters []string
	room    int64
}

// pack leaves out files that go meanwhile: processes rotate their logs.
func (p *packer) pack(ctx context.Context, root *os.Root) error {
	err := fs.WalkDir(root.FS(), p.dir, func(at string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		name := strings.TrimPrefix(at, p.dir+"/")
		if err != nil || !e.Type().IsRegular() || !chosen(name, p.filters) {
			return nil //nolint:nilerr // it went
		}
		return p.add(root, at, "./"+name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (p *packer) add(root *os.Root, at, name string) error {
	f, err := root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe
	if err != nil {
		return nil //nolint:nilerr // it went
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > p.room {
		return err
	}
	p.room -= info.Size()
	if err := p.archive.WriteHeader(&tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	n, err := io.Copy(p.archive, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() { // it was truncated meanwhile
		_, err = io.CopyN(p.archive, zeros{}, info.Size()-n)
	}
	return err
}

// zeros reads zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// chosen reports whether a file is one of those that filters match: JOB/*.log, or
// **/*.log at any depth. Without filters all are.
func chosen(name string, filters []string) bool {
	for _, f := range filters {
		if base, deep := strings.CutPrefix(f, "**/"); deep {
			if ok, _ := path.Match(base, path.Base(name)); ok {
				return true
			}
		}
		if ok, _ := path.Match(f, name); ok {
			return true
		}
	}
	return len(filters) == 0
}
