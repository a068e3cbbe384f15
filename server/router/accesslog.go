package router

import (
	"net/http"
	"strconv"
	"time"
)

// AccessEntry is one finished request.
type AccessEntry struct {
	AppGUID      string // the app whose log it belongs to, or ""
	InstanceGUID string // of the endpoint; "" without one
	Index        string // likewise
	Began        time.Time
	At           time.Time     // of the end
	Request      *http.Request // as it came; valid while AccessLog runs
	ID           string        // X-Vcap-Request-Id
	Trace        string        // what Config.Trace returned
	Status       int           // 0: none was sent
	Written      int64         // bytes of the answer's body
	Line         []byte        // gorouter's RTR line; valid while AccessLog runs
}

// log calls AccessLog.
func (x *exchange) log() {
	now := time.Now()
	x.ended = now
	buf, _ := x.router.lines.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = x.appendLine((*buf)[:0], now)
	entry := AccessEntry{AppGUID: x.appGUID(), Began: x.started, At: now, Request: x.request, ID: x.id, Trace: x.trace, Status: x.status, Written: x.written, Line: *buf}
	if x.endpoint != nil {
		entry.InstanceGUID, entry.Index = x.endpoint.InstanceGUID, x.endpoint.index
	}
	x.router.config.AccessLog(entry)
	x.router.lines.Put(buf)
}

// The most that is logged of a header and of a URI (gorouter).
const (
	maxLoggedHeader = 1_000
	maxLoggedURI    = 20_000
)

// appendLine appends the RTR line, without end of line.
func (x *exchange) appendLine(b []byte, now time.Time) []byte {
	b = append(b, x.request.Host...)
	b = append(b, " - ["...)
	b = appendTime(b, x.started.UTC())
	b = append(b, "] "...)
	uri := truncate(x.request.RequestURI, "REQUEST-URI", maxLoggedURI)
	b = appendQuote(b, x.request.Method+" "+uri+" "+x.request.Proto)
	b = append(b, ' ')
	if x.status == 0 {
		b = append(b, `"-"`...)
	} else {
		b = strconv.AppendInt(b, int64(x.status), 10)
	}
	b = append(b, ' ')
	b = strconv.AppendInt(b, x.received(), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, x.written, 10)
	b = append(b, ' ')
	b = x.appendClient(b)
	b = x.appendTimes(b, now)
	return x.appendEndpoint(b)
}

// appendTime appends a time as "2006-01-02T15:04:05.000000000Z".
func appendTime(b []byte, t time.Time) []byte {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = appendDigits(b, year, 4)
	b = appendDigits(append(b, '-'), int(month), 2)
	b = appendDigits(append(b, '-'), day, 2)
	b = appendDigits(append(b, 'T'), hour, 2)
	b = appendDigits(append(b, ':'), minute, 2)
	b = appendDigits(append(b, ':'), second, 2)
	b = appendDigits(append(b, '.'), t.Nanosecond(), 9)
	return append(b, 'Z')
}

// appendDigits appends the last digits of a number.
func appendDigits(b []byte, n, digits int) []byte {
	var text [9]byte
	for i := digits - 1; i >= 0; i-- {
		text[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, text[:digits]...)
}

// appendClient appends what the client says of itself and its request.
func (x *exchange) appendClient(b []byte) []byte {
	header := x.header
	if header == nil {
		header = x.request.Header
	}
	first := func(key, name string) string {
		return truncate(firstOr(header[key], ""), name, maxLoggedHeader)
	}
	b = appendQuoted(b, "", first("Referer", "REFERER"))
	b = appendQuoted(b, "", first("User-Agent", "USER-AGENT"))
	b = appendQuoted(b, "", x.request.RemoteAddr)
	address := ""
	if x.endpoint != nil {
		address = x.endpoint.address
	}
	b = appendQuoted(b, "", address)
	b = appendQuoted(b, "x_forwarded_for:", first(forwardedFor, "X-FORWARDED-FOR"))
	b = appendQuoted(b, "x_forwarded_proto:", first(forwardedProto, "X-FORWARDED-PROTO"))
	return appendQuoted(b, "vcap_request_id:", x.id)
}

func (x *exchange) appendTimes(b []byte, now time.Time) []byte {
	b = append(b, "response_time:"...)
	b = appendSeconds(b, now.Sub(x.started))
	b = append(b, " gorouter_time:"...)
	if x.endpoint == nil {
		return append(b, `"-" `...)
	}
	b = appendSeconds(b, x.sent.Sub(x.started)) // what went by before the endpoint had it
	return append(b, ' ')
}

func (x *exchange) appendEndpoint(b []byte) []byte {
	var app, index, instance string
	if x.endpoint != nil {
		app, index, instance = x.endpoint.AppGUID, x.endpoint.index, x.endpoint.InstanceGUID
	}
	b = appendQuoted(b, "app_id:", app)
	b = appendQuoted(b, "app_index:", index)
	b = appendQuoted(b, "instance_id:", instance)
	b = appendQuoted(b, "x_cf_routererror:", x.routerError())
	return b[:len(b)-1]
}

// routerError is the router's own, or the one an app sent on.
func (x *exchange) routerError() string {
	if x.err != "" {
		return x.err
	}
	return x.Header().Get(routerErrorHeader)
}

func (x *exchange) received() int64 {
	if x.body == nil {
		return 0
	}
	return x.body.n.Load()
}

// appendQuoted appends name, the quoted value (or "-") and a space.
func appendQuoted(b []byte, name, value string) []byte {
	b = append(b, name...)
	if value == "" {
		value = "-"
	}
	return append(appendQuote(b, value), ' ')
}

// appendQuote is strconv.AppendQuote, which takes its time with what needs no quoting.
func appendQuote(b []byte, value string) []byte {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return strconv.AppendQuote(b, value)
		}
	}
	b = append(b, '"')
	b = append(b, value...)
	return append(b, '"')
}

// truncate halves what is too long and says so (gorouter).
func truncate(value, name string, limit int) string {
	for len(value) > limit {
		value = value[:len(value)/2] + "..." + name + "-TOO-LONG-TO-LOG--TRUNCATED"
	}
	return value
}
