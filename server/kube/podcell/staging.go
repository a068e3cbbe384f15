package podcell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cupola/runtime/contract"
	"cupola/runtime/durable"
	"cupola/runtime/lrp"
	"cupola/server/kube"
	"cupola/server/kube/registry"
)

// staging is an instance that stages an app. Its stager asks for the plan once, which this daemon alone has: it holds what only the
// processes may know that need it. What the stager sends is kept on disk until the end is reported, whichever daemon does that.
type staging struct {
	i        *instance
	requests chan struct{} // full while there are too many

	mu      sync.Mutex
	plan    []byte // nil where an earlier daemon had it
	sending map[string]bool
	kept    keptOutputs
}

// keptOutputs are in a file, in the directory of the cell.
type keptOutputs struct {
	Outputs []lrp.Blob
	Result  []byte // nil: it was not sent
}

const (
	keptSuffix  = ".staged" // of the file with keptOutputs, after the GUID
	maxRequests = 16
)

// newStaging is that of an instance; nil if it stages nothing.
func newStaging(i *instance) *staging {
	if !kube.Stages(i.spec) {
		return nil
	}
	return &staging{i: i, requests: make(chan struct{}, maxRequests), sending: map[string]bool{}}
}

// stager is how the pod of a container reaches this daemon.
func (p *Pulls) stager(cell, guid string) (*kube.Stager, error) {
	ca, err := p.CA()
	if err != nil {
		return nil, fmt.Errorf("read the certificate of cupola's CA: %w", err)
	}
	return &kube.Stager{URL: p.registry.StagingURL(cell, guid), Token: p.registry.StagingToken(cell, guid), CA: string(ca)}, nil
}

// staging finds a staging of a cell, for its stager.
func (p *Pulls) staging(cell, guid string) (registry.Staging, error) {
	p.mu.Lock()
	c := p.cells[cell]
	p.mu.Unlock()
	switch {
	case c == nil:
		return nil, registry.ErrNoStaging
	case !c.knows():
		return nil, registry.ErrNotKnown
	}
	i := c.instance(guid)
	if i == nil || i.staging == nil || i.stopped() || i.isOver() {
		return nil, registry.ErrNoStaging
	}
	return i.staging, nil
}

// take takes the plan, as a daemon does that starts the staging.
func (s *staging) take(spec lrp.Container) error {
	plan, err := kube.PlanOf(spec)
	if err != nil {
		return err
	}
	text, err := json.Marshal(plan)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = text
	return err
}

// Begin begins a request.
func (s *staging) Begin() (end func(), ok bool) {
	select {
	case s.requests <- struct{}{}:
		return func() { <-s.requests }, true
	default:
		return nil, false
	}
}

// Plan returns the work of the staging.
func (s *staging) Plan() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plan == nil {
		return nil, registry.ErrNoStaging
	}
	return s.plan, nil
}

// Input opens an archive.
func (s *staging) Input(source string) (*os.File, error) {
	s.i.mu.Lock()
	named := slices.Contains(s.i.record.Inputs, source)
	s.i.mu.Unlock()
	if !named {
		return nil, registry.ErrNotNamed
	}
	return s.i.cell.cfg.Pulls.Open(source)
}

// outputs are what a staging may send.
var outputs = []string{"droplet", "cache", contract.OutputResult}

// Output keeps a file, once.
func (s *staging) Output(ctx context.Context, name string, body io.Reader) error {
	if !slices.Contains(outputs, name) {
		return registry.ErrNotNamed
	}
	if err := s.begin(name); err != nil {
		return err
	}
	defer s.end(name)
	if name == contract.OutputResult {
		text, err := io.ReadAll(&limited{body, contract.MaxResult})
		if err != nil {
			return err
		}
		return s.keep(func(k *keptOutputs) { k.Result = append([]byte{}, text...) })
	}
	most := int64(s.i.spec.DiskMB) << 20
	if most <= 0 {
		most = maxOutput
	}
	b, err := s.i.cell.cfg.Pulls.Keep(ctx, &limited{body, most})
	if err != nil {
		return err
	}
	b.Name = name
	return s.keep(func(k *keptOutputs) { k.Outputs = append(k.Outputs, b) })
}

// maxOutput bounds an output of a staging without a disk limit. Bytes.
const maxOutput = 32 << 30

// limited reads no more than what is left.
type limited struct {
	io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, registry.ErrTooLarge
	}
	return n, err
}

// begin notes that a file is being sent.
func (s *staging) begin(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := slices.ContainsFunc(s.kept.Outputs, func(b lrp.Blob) bool { return b.Name == name })
	switch {
	case has || name == contract.OutputResult && s.kept.Result != nil:
		return registry.ErrHas
	case s.sending[name]:
		return registry.ErrBusy
	}
	s.sending[name] = true
	return nil
}

func (s *staging) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sending, name)
}

// keep stores what was sent on disk, before the stager gets an answer.
func (s *staging) keep(change func(*keptOutputs)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.kept
	next.Outputs = slices.Clone(next.Outputs)
	change(&next)
	text, err := json.Marshal(next)
	if err == nil {
		err = durable.Write(s.file(), text, 0o600)
	}
	if err == nil {
		s.kept = next
	}
	return err
}

func (s *staging) file() string { return filepath.Join(s.i.cell.cfg.Dir, s.i.guid+keptSuffix) }

// load reads what an earlier daemon kept.
func (s *staging) load() {
	text, err := os.ReadFile(s.file())
	if err == nil {
		s.mu.Lock()
		err = json.Unmarshal(text, &s.kept)
		s.mu.Unlock()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.i.cell.cfg.Log.Error("outputs of a staging were lost", "instance_guid", s.i.guid, "err", err)
	}
}

func (s *staging) remove() { _ = os.Remove(s.file()) }

// ended are the result and the outputs, in order.
func (s *staging) ended() ([]byte, []lrp.Blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.Result, slices.SortedFunc(slices.Values(s.kept.Outputs), func(a, b lrp.Blob) int { return cmp.Compare(a.Name, b.Name) })
}

// staged ends an instance whose stager has ended.
func (i *instance) staged(ctx context.Context, end kube.InstanceEnd) bool {
	reason, lost := end.StagingReason()
	if lost {
		return i.lost(ctx, "the daemon that started it ended before it began")
	}
	i.output.drain()
	if !end.Reported() {
		i.line(end.Source, true, end.Line())
	}
	result, outputs := i.staging.ended()
	if reason == "" && result == nil {
		reason = "failed to fetch result"
	}
	if slices.ContainsFunc(outputs, func(b lrp.Blob) bool { return !i.cell.cfg.Pulls.Has(b.Digest) }) {
		// No row names them before its end is known, which is late where the cluster did not answer.
		return i.lost(ctx, "what it made was not kept for so long")
	}
	return i.end(ctx, lrp.Exit{Code: end.Code, Reason: reason, Failed: reason != ""})
}

// removeKept removes what was kept of stagings that are not there.
func (c *Cell) removeKept(there map[string]bool) {
	files, _ := filepath.Glob(filepath.Join(c.cfg.Dir, "*"+keptSuffix)) // the pattern is well formed
	for _, file := range files {
		guid := strings.TrimSuffix(filepath.Base(file), keptSuffix)
		if !there[guid] && c.instance(guid) == nil {
			_ = os.Remove(file)
		}
	}
}
