package logcache

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"cupola/server/logcache/record"
)

// chunk is envelopes of one source that follow each other in time, in a tenth of the room: the texts that most of them repeat
// are there once, a time is what it differs from the one before, and a value what its bits differ. It does not change.
type chunk struct {
	data           []byte
	count          int
	bytes          int64 // as Envelope.bytes counts
	oldest, newest int64 // nanoseconds since 1970
}

// A chunk's data are its envelopes. Each is
//
//	flags   one byte
//	form    its number, or 0 and the form, unless formFlag says that it is that of the envelope before
//	time    nanoseconds since that of the envelope before, uvarint
//	began   nanoseconds before time, varint, if beganFlag is set
//	values  of its metrics: each is the XOR of its bits and those of the form's last value, bytes reversed, uvarint
//	payload its length and bytes, if payloadFlag is set
//
// A form is an instance ID, 0 for no tags or 1 and their number, and their names and values, and the number of metrics, and their names and units.
// All of these are texts: a text is its number, or 0, its length and bytes. Numbers of forms and texts count from 1 in the order they come;
// those of commonTexts are first.
const (
	kindMask    = 3
	errFlag     = 1 << 2
	beganFlag   = 1 << 3
	payloadFlag = 1 << 4
	formFlag    = 1 << 5
)

// commonTexts are those that most chunks have. Chunks are in memory alone: the list may change.
var commonTexts = []string{"", "0", "1", "cf", "127.0.0.1", "web", "source_type", "origin", "deployment", "job", "index", "ip",
	"app_id", "app_name", "space_id", "space_name", "organization_id", "organization_name", "instance_id", "process_id", "process_instance_id", "process_type", "source_id",
	"rep", "diego-cell", "cloud_controller", "api", "API", "gorouter", "router", "RTR", "STG", "CELL", "APP/PROC/WEB", "__v1_type", "LogMessage",
	"cpu", "percentage", "memory", "bytes", "memory_quota", "disk", "disk_quota", "cpu_entitlement", "absolute_usage", "nanoseconds", "absolute_entitlement", "container_age",
	"log_rate", "B/s", "log_rate_limit", "http", "ns", "peer_type", "Server", "method", "status_code", "GET", "200"}

var commonNumbers = func() map[string]uint64 {
	all := map[string]uint64{}
	for i, text := range commonTexts {
		all[text] = uint64(i + 1)
	}
	return all
}()

// fits reports whether a chunk can hold e as it is: nanoseconds are enough for some 290 years from 1970.
func (e *Envelope) fits() bool {
	exact := func(t time.Time) bool { return time.Unix(0, t.UnixNano()).Equal(t) }
	return exact(e.Timestamp) && (e.Began.IsZero() || exact(e.Began)) && int(e.Kind) < len(kinds)
}

func fit(all []Envelope) bool {
	return !slices.ContainsFunc(all, func(e Envelope) bool { return !e.fits() })
}

func (c *chunk) oldestTime() time.Time { return time.Unix(0, c.oldest) }

func (c *chunk) newestTime() time.Time { return time.Unix(0, c.newest) }

// packer encodes envelopes.
type packer struct {
	b     []byte
	texts map[string]uint64
	forms map[string]*packedForm // by their encoding with formKey
	form  *packedForm            // of the envelope before
	of    *Envelope              // that envelope
	last  int64
}

// packedForm is a form and the bits of the last values that it had.
type packedForm struct {
	number uint64
	values []uint64
}

// pack makes a chunk of envelopes that fit, in the order of time.
func pack(all []Envelope) chunk {
	p := packer{b: takeBuffer(), texts: map[string]uint64{}, forms: map[string]*packedForm{}}
	c := chunk{count: len(all), oldest: all[0].Timestamp.UnixNano(), newest: all[len(all)-1].Timestamp.UnixNano()}
	for i := range all {
		p.add(&all[i])
		c.bytes += all[i].bytes()
	}
	c.data = append(make([]byte, 0, len(p.b)), p.b...)
	giveBuffer(p.b)
	return c
}

func (p *packer) add(e *Envelope) {
	flags, at := len(p.b), e.Timestamp.UnixNano()
	p.b = append(p.b, byte(e.Kind))
	if p.addForm(e) {
		p.b[flags] |= formFlag
	}
	p.b = binary.AppendUvarint(p.b, uint64(at-p.last)) //nolint:gosec // the sum wraps around as this does
	p.last, p.of = at, e
	if e.Err {
		p.b[flags] |= errFlag
	}
	if !e.Began.IsZero() {
		p.b[flags] |= beganFlag
		p.b = binary.AppendVarint(p.b, at-e.Began.UnixNano())
	}
	for i, m := range e.Metrics {
		now := math.Float64bits(m.Value)
		p.b = binary.AppendUvarint(p.b, bits.ReverseBytes64(p.form.values[i]^now))
		p.form.values[i] = now
	}
	if e.Payload != nil {
		p.b[flags] |= payloadFlag
		p.b = record.AppendText(p.b, e.Payload)
	}
}

// addForm adds e's form, and makes it the packer's. It reports whether it was so already.
func (p *packer) addForm(e *Envelope) (same bool) {
	if p.of != nil && sameForm(p.of, e) {
		return true
	}
	key := e.appendForm(takeBuffer())
	defer giveBuffer(key)
	known := p.forms[string(key)]
	if same = known != nil && known == p.form; same {
		return true
	}
	if p.form = known; known != nil {
		p.b = binary.AppendUvarint(p.b, known.number)
		return false
	}
	p.form = &packedForm{number: uint64(len(p.forms) + 1), values: make([]uint64, len(e.Metrics))}
	p.forms[string(key)] = p.form
	p.b = append(p.b, 0)
	p.addNewForm(e)
	return false
}

func (p *packer) addNewForm(e *Envelope) {
	p.text(e.InstanceID)
	if e.Tags == nil {
		p.b = append(p.b, 0)
	} else {
		p.b = binary.AppendUvarint(append(p.b, 1), uint64(len(e.Tags)))
		for name, value := range e.Tags {
			p.text(name)
			p.text(value)
		}
	}
	p.b = binary.AppendUvarint(p.b, uint64(len(e.Metrics)))
	for _, m := range e.Metrics {
		p.text(m.Name)
		p.text(m.Unit)
	}
}

func (p *packer) text(t string) {
	number, ok := commonNumbers[t]
	if !ok {
		if number, ok = p.texts[t]; !ok {
			p.texts[t] = uint64(len(commonTexts) + len(p.texts) + 1)
			p.b = append(p.b, 0)
			p.b = record.AppendText(p.b, t)
			return
		}
	}
	p.b = binary.AppendUvarint(p.b, number)
}

func sameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// sameForm reports whether envelopes obviously have one form: their tags are the same map.
func sameForm(a, b *Envelope) bool {
	return a.InstanceID == b.InstanceID && sameMap(a.Tags, b.Tags) && slices.EqualFunc(a.Metrics, b.Metrics, func(a, b Metric) bool { return a.Name == b.Name && a.Unit == b.Unit })
}

// appendForm appends what identifies a form.
func (e *Envelope) appendForm(b []byte) []byte {
	if e.Tags != nil {
		b = append(b, 1)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Tags)))
	b = appendTags(b, e.InstanceID, e.Tags)
	for _, m := range e.Metrics {
		b = record.AppendText(record.AppendText(b, m.Name), m.Unit)
	}
	return b
}

// form is what envelopes have in common.
type form struct {
	instance string
	tags     map[string]string
	metrics  []Metric // names, units and the last values
}

// unpacker decodes a chunk.
type unpacker struct {
	b     []byte
	texts []string
	forms []form
	form  int // that of the envelope before
	last  int64
}

// unpack returns a chunk's envelopes. Their payloads are parts of it.
func (c *chunk) unpack(source string) []Envelope {
	u := unpacker{b: c.data}
	all := make([]Envelope, c.count)
	for i := range all {
		all[i] = u.next()
		all[i].SourceID = source
	}
	return all
}

func (u *unpacker) next() (e Envelope) {
	flags := u.b[0]
	u.b = u.b[1:]
	if flags&formFlag == 0 {
		if u.form = int(u.number()) - 1; u.form < 0 { //nolint:gosec // as pack wrote it
			u.form = len(u.forms)
			u.forms = append(u.forms, u.newForm())
		}
	}
	f := &u.forms[u.form]
	u.last += int64(u.number()) //nolint:gosec // it wraps around as it did
	e = Envelope{Timestamp: time.Unix(0, u.last), InstanceID: f.instance, Tags: f.tags, Kind: Kind(flags & kindMask), Err: flags&errFlag != 0}
	if flags&beganFlag != 0 {
		age, n := binary.Varint(u.b)
		u.b, e.Began = u.b[n:], time.Unix(0, u.last-age)
	}
	for i := range f.metrics {
		m := &f.metrics[i]
		m.Value = math.Float64frombits(math.Float64bits(m.Value) ^ bits.ReverseBytes64(u.number()))
	}
	e.Metrics = slices.Clone(f.metrics)
	if flags&payloadFlag != 0 {
		n := u.number()
		e.Payload, u.b = u.b[:n:n], u.b[n:]
	}
	return e
}

func (u *unpacker) newForm() (f form) {
	f.instance = u.text()
	if tagged := u.b[0] != 0; tagged {
		u.b = u.b[1:]
		n := u.number()
		f.tags = make(map[string]string, n)
		for range n {
			name := u.text()
			f.tags[name] = u.text()
		}
	} else {
		u.b = u.b[1:]
	}
	if n := u.number(); n > 0 {
		f.metrics = make([]Metric, n)
		for i := range f.metrics {
			f.metrics[i].Name = u.text()
			f.metrics[i].Unit = u.text()
		}
	}
	return f
}

func (u *unpacker) text() string {
	switch number := u.number(); {
	case number == 0:
		n := u.number()
		u.texts = append(u.texts, string(u.b[:n]))
		u.b = u.b[n:]
		return u.texts[len(u.texts)-1]
	case number <= uint64(len(commonTexts)):
		return commonTexts[number-1]
	default:
		return u.texts[number-uint64(len(commonTexts))-1]
	}
}

// number takes a number; pack wrote it whole.
func (u *unpacker) number() uint64 {
	number, n := binary.Uvarint(u.b)
	u.b = u.b[n:]
	return number
}

// split cuts envelopes into parts of about size bytes, none of which is empty.
func split(all []Envelope, size int64) iter.Seq[[]Envelope] {
	return func(yield func([]Envelope) bool) {
		from, sum := 0, int64(0)
		for i := range all {
			if sum += all[i].bytes(); sum < size && i < len(all)-1 {
				continue
			}
			if !yield(all[from : i+1]) {
				return
			}
			from, sum = i+1, 0
		}
	}
}
