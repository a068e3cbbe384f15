package podcell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/kube"
	"cupola/server/kube/apply"
)

// output is what an instance's processes write: the cluster's log of each container. How far it
// was read is kept in a file, so that the next daemon goes on there.
type output struct {
	reading sync.WaitGroup
	ctx     context.Context    // of all that reads
	cancel  context.CancelFunc // of ctx; nil before the first
	file    string

	mu     sync.Mutex
	readBy map[string]bool      // containers that are read
	over   chan struct{}        // closed when no more comes
	read   map[string]time.Time // the time of the last line, by container
	kept   time.Time
}

// drainTime bounds how long the end of a log is waited for.
const drainTime = 5 * time.Second

// keepEvery is how often is written how far logs were read: a killed daemon's successor logs
// the lines since then again.
const keepEvery = time.Second

// maxLine is the most of a line that is logged at once, as on other cells.
const maxLine = 61440

// load reads how far an earlier daemon was.
func (o *output) load(i *instance) {
	text, err := os.ReadFile(filepath.Join(i.cell.cfg.Dir, i.guid))
	if err == nil {
		_ = json.Unmarshal(text, &o.read)
	}
}

// follow reads the logs of the containers that have started.
func (o *output) follow(ctx context.Context, i *instance, s kube.InstanceState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cancel == nil {
		o.file = filepath.Join(i.cell.cfg.Dir, i.guid)
		o.ctx, o.cancel = context.WithCancel(ctx)
		o.readBy, o.over = map[string]bool{}, make(chan struct{})
		if o.read == nil {
			o.read = map[string]time.Time{}
		}
	}
	if s.Phase == lrp.PhaseExited {
		o.end()
	}
	for _, name := range s.Started {
		if o.readBy[name] {
			continue
		}
		o.readBy[name] = true
		o.reading.Go(fault.Func("podcell", func() { i.readLog(o.ctx, name) }))
	}
}

// drain waits until all was read of what has ended.
func (o *output) drain() {
	o.mu.Lock()
	cancel := o.cancel
	if cancel != nil {
		o.end()
	}
	o.mu.Unlock()
	if cancel == nil {
		return
	}
	late := time.AfterFunc(drainTime, cancel)
	o.reading.Wait()
	late.Stop()
	cancel()
}

// close looks away.
func (o *output) close() {
	o.mu.Lock()
	cancel := o.cancel
	o.mu.Unlock()
	if cancel != nil {
		cancel()
		o.reading.Wait()
	}
}

func (o *output) remove() {
	if o.file != "" {
		_ = os.Remove(o.file)
	}
}

// end notes that no more comes. The caller has mu.
func (o *output) end() {
	if !o.isEnded() {
		close(o.over)
	}
}

func (o *output) isEnded() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

func (o *output) until(container string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.read[container]
}

// note notes that a line was logged.
func (o *output) note(container string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read[container] = at
	if time.Since(o.kept) >= keepEvery {
		o.keep()
	}
}

// keep writes the file. The caller has mu.
func (o *output) keep() {
	o.kept = time.Now()
	text, err := json.Marshal(o.read)
	if err == nil {
		err = os.WriteFile(o.file+".new", text, 0o600)
	}
	if err == nil {
		_ = os.Rename(o.file+".new", o.file)
	}
}

const (
	lastTries    = 3 // how often the log of a container that has ended is asked for
	firstLogWait = 100 * time.Millisecond
	maxLogWait   = time.Minute // between attempts to read a log that the cluster does not give
)

// readLog logs the lines of a container until it has ended.
func (i *instance) readLog(ctx context.Context, container string) {
	defer func() {
		i.output.mu.Lock()
		defer i.output.mu.Unlock()
		i.output.keep()
	}()
	wait, more := firstLogWait, lastTries
	for ctx.Err() == nil {
		began, over := time.Now(), i.output.over
		ended := i.output.isEnded() // before it is read: what is read after the end is all
		from, err := i.cell.cfg.Cluster.Logs(ctx, i.guid, container, i.output.until(container))
		if err == nil {
			var n int
			n, err = i.readLines(from, container, ended && more == 1)
			_ = from.Close()
			if n > 0 || time.Since(began) > drainTime {
				wait = firstLogWait
			}
		}
		if ended {
			if more--; errors.Is(err, io.EOF) || more == 0 {
				return
			}
			over = nil
		}
		select {
		case <-ctx.Done():
		case <-over:
			wait = firstLogWait
			continue
		case <-time.After(wait):
		}
		wait = i.nextLogWait(wait, err)
	}
}

// nextLogWait is the wait after another one that a log could not be read any further.
func (i *instance) nextLogWait(wait time.Duration, err error) time.Duration {
	if !errors.Is(err, apply.ErrNoLog) {
		return min(2*wait, drainTime)
	}
	next := min(2*wait, maxLogWait)
	if next == maxLogWait && wait < next {
		i.errorf("Output of instance %s is missing here, and is asked for once a minute: %s", i.guid, err)
	}
	return next
}

// readLines logs the lines that were not logged before, and counts them. A log that ends in the middle of a line was cut off:
// the line is logged whole when it is read again, or as it is at the last try.
func (i *instance) readLines(from io.Reader, container string, lastTry bool) (n int, err error) {
	source, last := i.sourceOf(container), i.output.until(container)
	r := lines{Reader: bufio.NewReaderSize(from, partSize)}
	for rest, old := false, false; ; {
		text, cut, err := r.next()
		if len(text) == 0 || err != nil && !cut && !errors.Is(err, io.EOF) {
			return n, err
		}
		if errors.Is(err, io.EOF) && !lastTry {
			return n, io.ErrUnexpectedEOF
		}
		text = bytes.TrimRight(text, "\r\n")
		if !rest { // the rest of a line that was too long has no time
			var at time.Time
			if at, text = stamped(text, last); at.After(last) {
				last, old = at, false
			} else {
				old = true
			}
		}
		rest = cut
		if old {
			continue
		}
		if out := i.limiter.Limit(text, time.Now()); len(out) > 0 {
			n++
			i.cell.cfg.Logs(lrp.LogLine{Target: i.logTarget(source), At: last, Text: bytes.Clone(out)})
		}
		i.output.note(container, last)
	}
}

// lines reads lines, with little memory for as long as they are short: most pods write few.
type lines struct {
	*bufio.Reader

	long []byte
}

// parts are what the longest line with its time is read in, of partSize each.
const (
	parts    = 16
	partSize = (maxLine + 64) / parts
)

// next is a line, or a part of one that is too long to be logged at once. It is good until the next call.
func (l *lines) next() (text []byte, cut bool, err error) {
	l.long = nil
	for range parts {
		text, err = l.ReadSlice('\n')
		cut = errors.Is(err, bufio.ErrBufferFull)
		if l.long == nil && !cut {
			return text, false, err
		}
		l.long = append(l.long, text...)
		if !cut {
			break
		}
	}
	return l.long, cut, err
}

// stamped splits a line from its time, which is otherwise where the cluster gave none.
func stamped(line []byte, otherwise time.Time) (time.Time, []byte) {
	stamp, text, _ := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return otherwise, line
	}
	return at, text
}

func (i *instance) sourceOf(container string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.record.Sources[container]; s != "" {
		return s
	}
	return i.spec.Log.Source
}

// logTarget is under which name the output of a source is logged. All lines of a source share
// their tags.
func (i *instance) logTarget(source string) lrp.LogTarget {
	i.mu.Lock()
	defer i.mu.Unlock()
	target := i.record.Container.Log
	target.Source = source
	tags := i.tags[source]
	if tags == nil {
		tags = maps.Clone(i.cell.cfg.LogTags)
		if tags == nil {
			tags = map[string]string{}
		}
		tags["index"] = i.cell.pods.Cell
		maps.Copy(tags, i.record.Container.Log.Tags)
		if source != "" {
			tags["source_type"] = source
		}
		if i.tags == nil {
			i.tags = map[string]map[string]string{}
		}
		i.tags[source] = tags
	}
	target.Tags = tags
	return target
}

// line logs text under the container's name, as coming from source.
func (i *instance) line(source string, isErr bool, text string) {
	i.cell.cfg.Logs(lrp.LogLine{Target: i.logTarget(source), At: time.Now(), Err: isErr, Text: []byte(text)})
}
