// Package bbsrows reads what clients of the BBS asked for out of the store, and
// keeps it decoded: most of it is read again and again, and seldom changes.
package bbsrows

import (
	"fmt"
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

	tag lrp.Tag
}

// Cache reads rows. It is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	desired map[string]*Desired    // by process GUID
	actuals map[string]*lrp.Actual // by the epoch of their tag
}

// New makes a Cache that has nothing yet.
func New() *Cache {
	return &Cache{desired: map[string]*Desired{}, actuals: map[string]*lrp.Actual{}}
}

// maxIdle is how many rows are kept that the last look did not ask for.
const maxIdle = 5000

// Running gives the DesiredLRPs that have instances.
func (c *Cache) Running(tx *store.Tx) ([]*Desired, error) {
	return c.List(tx, map[string][]string{"running": nil})
}

// List gives the DesiredLRPs that the filters of store.BBSDesiredKeys choose.
func (c *Cache) List(tx *store.Tx, where map[string][]string) ([]*Desired, error) {
	keys, err := store.BBSDesiredKeys.Where(tx, where)
	if err != nil {
		return nil, err
	}
	if err := c.fetch(tx, keys); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Desired, 0, len(keys))
	for _, k := range keys {
		list = append(list, c.desired[k.ProcessGUID])
	}
	return list, nil
}

// fetch reads the messages of those rows that changed since they were read.
func (c *Cache) fetch(tx *store.Tx, keys []*store.BBSDesired) error {
	c.mu.Lock()
	if len(c.desired) > len(keys)+maxIdle {
		clear(c.desired)
	}
	var missing []string
	for _, k := range keys {
		if have := c.desired[k.ProcessGUID]; have == nil || have.tag != k.Tag {
			missing = append(missing, k.ProcessGUID)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	found, err := store.BBSDesireds.By(tx, "guids", missing...)
	if err != nil {
		return err
	}
	for _, row := range found {
		d, err := Decode(row)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.desired[row.ProcessGUID] = d
		c.mu.Unlock()
	}
	return nil
}

// Message gives the DesiredLRP of a GUID as it was read last; nil when it was
// not.
func (c *Cache) Message(processGUID string) *bbspb.DesiredLRP {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.desired[processGUID]; d != nil {
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
