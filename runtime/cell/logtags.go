package cell

import (
	"fmt"
	"maps"
	"sync"

	"cupola/runtime/lrp"
)

// logTags are the tags of a container's lines. They change while it runs, when
// its app is renamed. All lines of one source share a map.
type logTags struct {
	cell     map[string]string // of every container of the logical cell
	mu       sync.Mutex
	tags     map[string]string
	bySource map[string]map[string]string // with the cell's, and source_type
}

func (t *logTags) set(tags map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tags, t.bySource = tags, map[string]map[string]string{}
}

// own are those that the container was given.
func (t *logTags) own() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tags
}

// of are the tags of the lines of a source. "" is that of measurements, which have
// no source_type.
func (t *logTags) of(source string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.bySource[source]
	if all == nil {
		all = map[string]string{}
		maps.Copy(all, t.cell)
		maps.Copy(all, t.tags)
		if source != "" {
			all["source_type"] = source
		}
		t.bySource[source] = all
	}
	return all
}

// logTarget is under which name the output of a source is logged.
func (i *instance) logTarget(source string) lrp.LogTarget {
	target := i.spec.Log
	target.Source, target.Tags = source, i.tags.of(source)
	return target
}

// logTags are the tags that the lines of a logical cell have.
func (c *Cell) logTags(id string) map[string]string {
	if c.cfg.LogTags == nil {
		return nil
	}
	tags := maps.Clone(c.cfg.LogTags)
	tags["index"] = id
	return tags
}

// setLogTags gives the lines of a container other tags (Diego:
// UpdateDesiredLRP's metric_tags). Lines that were read before keep theirs. The
// error is errNotRunning.
func (c *Cell) setLogTags(guid string, tags map[string]string) error {
	<-c.adopted
	i := c.instance(guid)
	if i == nil {
		return errNotRunning
	}
	i.tags.set(tags)
	if err := i.save(func(r *record) { r.Container.Log.Tags = tags }); err != nil {
		return fmt.Errorf("keep the log's tags: %w", err)
	}
	return nil
}

// LogTags returns the tags of a container's measurements; nil where there is no
// such container. They are not to be changed.
func (c *Cell) LogTags(guid string) map[string]string {
	i := c.instance(guid)
	if i == nil {
		return nil
	}
	return i.logTarget("").Tags
}
