package bbs

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/store"
)

// topic is what an event is about. A stream has those of some topics.
type topic int

const (
	aboutDesired topic = iota
	aboutInstance
	aboutCrash
	aboutGroup // the deprecated events of instances
	aboutTask
)

// event is sent to subscribers.
type event struct {
	topic  topic
	name   string
	cellID string // aboutInstance, aboutCrash: the cell of the instance
	data   []byte // the message
}

// maxBehind is how many events a subscriber may be behind, Diego's number. One
// further behind is dropped, and must read everything again.
const maxBehind = 1024

// hub passes events to subscribers.
type hub struct {
	rows *bbsrows.Cache
	// message returns the DesiredLRP of an app's instance.
	message func(processGUID string) metricTagged
	cells   func() []lrp.Cell

	mu          sync.Mutex
	subscribers map[*subscriber]bool
}

// subscriber is a client that reads a stream.
type subscriber struct {
	events chan event // closed when the subscriber was too slow
	wants  func(event) bool
}

func newHub(rows *bbsrows.Cache, cells func() []lrp.Cell) *hub {
	return &hub{rows: rows, cells: cells, subscribers: map[*subscriber]bool{}, message: func(string) metricTagged { return nil }}
}

// zones are the zones of the cells, by ID.
func (h *hub) zones() map[string]string {
	zones := map[string]string{}
	for _, c := range h.cells() {
		zones[c.ID] = c.Zone
	}
	return zones
}

// subscribe returns a subscriber for every event from now on that wants accepts.
func (h *hub) subscribe(wants func(event) bool) *subscriber {
	s := &subscriber{events: make(chan event, maxBehind), wants: wants}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers[s] = true
	return s
}

func (h *hub) unsubscribe(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subscribers, s)
}

// idle reports whether there are no subscribers.
func (h *hub) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscribers) == 0
}

func (h *hub) publish(events []event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		for s := range h.subscribers {
			if !s.wants(e) {
				continue
			}
			select {
			case s.events <- e:
			default:
				delete(h.subscribers, s)
				close(s.events)
			}
		}
	}
}

// changes takes the changes of a transaction.
func (h *hub) changes(all []store.Change) {
	if h.idle() {
		return
	}
	var events []event
	for _, c := range all {
		events = append(events, h.translate(c)...)
	}
	h.publish(events)
}

// newEvent encodes an event's message. What cannot be encoded was never
// decoded, so there is nothing of it to tell.
func newEvent(t topic, name, cellID string, m proto.Message) event {
	data, err := proto.Marshal(m)
	if err != nil {
		return event{}
	}
	return event{topic: t, name: name, cellID: cellID, data: data}
}
