// Package bbsrows reads what clients of the BBS asked for out of the store, and
// keeps it decoded: most of it is read again and again, and seldom changes.
package bbsrows

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

// Desired is a DesiredLRP. What it points to is shared: it must not be changed.
type Desired struct {
	Message *bbspb.DesiredLRP
	LRP     lrp.Desired

	tag  lrp.Tag
	info *bbspb.DesiredLRPSchedulingInfo // nil: not yet made
}

// Cache reads rows. It is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	desired map[string]*Desired    // by the epoch of their tag
	named   map[string]*Desired    // by process GUID
	actuals map[string]*lrp.Actual // by the epoch of their tag
}

// New makes a Cache that has nothing yet.
func New() *Cache {
	return &Cache{desired: map[string]*Desired{}, named: map[string]*Desired{}, actuals: map[string]*lrp.Actual{}}
}

// maxIdle is how many rows are kept that the last look did not ask for.
const maxIdle = 5000

// Running returns the DesiredLRPs that have instances.
func (c *Cache) Running(tx *store.Tx) ([]*Desired, error) {
	return c.List(tx, map[string][]string{"running": nil})
}

// List returns the DesiredLRPs that the filters of store.BBSDesiredTags choose, in
// the order they were made.
func (c *Cache) List(tx *store.Tx, where map[string][]string) ([]*Desired, error) {
	tags, err := store.BBSDesiredTags.Where(tx, where)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if whole(where) && len(c.desired) > len(tags)+maxIdle {
		clear(c.desired)
		clear(c.named)
	}
	list := make([]*Desired, len(tags))
	missing := map[string]int{} // where in list, by epoch
	for i, t := range tags {
		if list[i] = c.desired[t.Epoch]; list[i] == nil || list[i].tag != *t {
			missing[t.Epoch] = i
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return list, nil
	}
	if err := c.fetch(tx, list, missing); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(d *Desired) bool { return d == nil }), nil // of rows that are left out
}

// whole reports whether filters leave out nothing that the loop looks at: after a
// look at a part, what is not of it is still in use.
func whole(where map[string][]string) bool {
	for filter := range where {
		if filter != "running" {
			return false
		}
	}
	return true
}

// fetch reads the rows of those epochs that are missing in a list.
func (c *Cache) fetch(tx *store.Tx, list []*Desired, missing map[string]int) error {
	rows, err := store.BBSDesireds.By(tx, "epochs", slices.Collect(maps.Keys(missing))...)
	if err != nil {
		return err
	}
	for _, row := range rows {
		d, err := Decode(row)
		if err != nil {
			if err := store.BBSDesireds.LeaveOut(tx, row, row.ProcessGUID, err); err != nil {
				return err
			}
			continue
		}
		d.info = model.SchedulingInfo(d.Message)
		list[missing[row.Tag.Epoch]] = d
		c.mu.Lock()
		c.desired[row.Tag.Epoch], c.named[row.ProcessGUID] = d, d
		c.mu.Unlock()
	}
	return nil
}

// SchedulingInfo is what of a DesiredLRP a scheduler needs. It is shared, too.
func (d *Desired) SchedulingInfo() *bbspb.DesiredLRPSchedulingInfo {
	if d.info != nil {
		return d.info
	}
	return model.SchedulingInfo(d.Message)
}

// Message returns the DesiredLRP of a GUID as it was read last; nil when it was
// not.
func (c *Cache) Message(processGUID string) *bbspb.DesiredLRP {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.named[processGUID]; d != nil {
		return d.Message
	}
	return nil
}

// Decode decodes a row.
func Decode(row *store.BBSDesired) (*Desired, error) {
	m := &bbspb.DesiredLRP{}
	if err := proto.Unmarshal(row.Message, m); err != nil {
		return nil, fmt.Errorf("decode desired LRP %s: %w", row.ProcessGUID, err)
	}
	return &Desired{Message: m, LRP: model.Desired(m), tag: row.Tag}, nil
}

// DecodeTask decodes the definition of a row.
func DecodeTask(row *store.BBSTask) (*bbspb.TaskDefinition, error) {
	m := &bbspb.TaskDefinition{}
	if err := proto.Unmarshal(row.Definition, m); err != nil {
		return nil, fmt.Errorf("decode task %s: %w", row.GUID, err)
	}
	return m, nil
}

// Run is what a task runs.
func Run(row *store.BBSTask) (lrp.RunInfo, error) {
	d, err := DecodeTask(row)
	if err != nil {
		return lrp.RunInfo{}, err
	}
	return model.Task(d), nil
}
