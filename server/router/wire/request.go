package wire

import (
	"bytes"
	"strings"
)

// Request is the head of a plain request.
type Request struct {
	Head
	Method string
	Target string // a path, and a query if there is a '?'
	Host   string
	Length int64 // of the body
	Close  bool  // the client wants no other answer on the connection
	// Upgrade is the protocol that the client wants to switch to; "" for none.
	Upgrade string

	upgrades bool // Connection says so
}

// Parse reads the head that p begins with, and returns its length.
//
// A plain request has the version 1.1, a path for its target, one Host, and lines
// that end in CR LF; its body has a length. It expects no 100, has no trailers, and its
// connection has no headers of its own. One that names a protocol to switch to, which is
// not HTTP/2, is a GET without a body.
func (r *Request) Parse(p []byte) (int, Verdict) {
	first, n, v := line(p)
	if v != Plain {
		return 0, v
	}
	methodEnd, targetEnd, ok := requestLine(first)
	if !ok {
		return 0, Odd
	}
	end, v := r.scan(p, n)
	if v != Plain {
		return 0, v
	}
	text := string(p[:end])
	r.reset()
	r.Method, r.Target = text[:methodEnd], text[methodEnd+1:targetEnd]
	r.Host, r.Length, r.Close, r.Upgrade, r.upgrades = "", -1, false, "", false
	for i, f := range r.fields {
		if !r.take(r.key(text, i), text[f.value:f.valueEnd]) {
			return 0, Odd
		}
	}
	if (r.Upgrade != "") != r.upgrades || r.upgrades && (r.Method != "GET" || r.Length >= 0) {
		return 0, Odd
	}
	r.Length = max(r.Length, 0)
	if r.Host == "" || pragma(r.Header) {
		return 0, Odd
	}
	return end, Plain
}

// Field is a header of HTTP/2, its name in Go's canonical spelling.
type Field struct{ Key, Value string }

// Compose makes the head of a request of HTTP/2, whose body has a length. It reports whether the
// request is plain, which means the same as for Parse.
func (r *Request) Compose(method, path, host string, length int64, fields []Field) bool {
	if len(fields) > maxFields || !upper([]byte(method)) || method == "CONNECT" || !target([]byte(path)) || host == "" || !all([]byte(host), inHost) {
		return false
	}
	r.reset()
	r.Method, r.Target, r.Host, r.Length, r.Close, r.Upgrade, r.upgrades = method, path, host, -1, false, "", false
	for _, f := range fields {
		switch {
		case f.Key == "Host":
		case f.Key == "Cookie" && r.Header["Cookie"] != nil: // may come in pieces (RFC 9113, 8.2.3)
			r.Header["Cookie"][0] += "; " + f.Value
		case !r.take(f.Key, f.Value) || r.Upgrade != "":
			return false
		}
	}
	r.Length = length
	return !pragma(r.Header)
}

// requestLine finds where the method and the target of a request line end.
func requestLine(text []byte) (methodEnd, targetEnd int, ok bool) {
	rest, ok := bytes.CutSuffix(text, []byte(" HTTP/1.1"))
	if !ok {
		return 0, 0, false
	}
	methodEnd = bytes.IndexByte(rest, ' ')
	if methodEnd <= 0 || !upper(rest[:methodEnd]) || string(rest[:methodEnd]) == "CONNECT" || string(rest[:methodEnd]) == "PRI" {
		return 0, 0, false
	}
	return methodEnd, len(rest), target(rest[methodEnd+1:])
}

func upper(p []byte) bool {
	for _, c := range p {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// target reports whether a target is a path that net/http takes.
func target(p []byte) bool {
	if len(p) == 0 || p[0] != '/' || len(p) > 1 && p[1] == '/' || !all(p, inTarget) {
		return false
	}
	path, _, _ := bytes.Cut(p, []byte("?"))
	for {
		i := bytes.IndexByte(path, '%')
		if i < 0 {
			return true
		}
		if len(path) < i+3 || digit(path[i+1]) < 0 || digit(path[i+2]) < 0 {
			return false
		}
		path = path[i+3:]
	}
}

// take takes a header; false if it makes the request odd.
func (r *Request) take(key, value string) bool {
	switch key {
	case "Host":
		ok := r.Host == "" && value != "" && all([]byte(value), inHost)
		r.Host = value
		return ok
	case "Content-Length":
		n, ok := length(value)
		ok = ok && r.Length < 0
		r.Length = n
		r.add(key, value)
		return ok
	case "Transfer-Encoding", "Trailer", "Te", "Expect", "Proxy-Connection", "Http2-Settings":
		return false
	case "Connection":
		if _, again := r.Header[key]; again {
			return false
		}
		r.add(key, value)
		return r.takeConnection(value)
	case "Upgrade":
		again := r.Upgrade != ""
		r.Upgrade = value
		r.add(key, value)
		return !again && protocol(value)
	case "Content-Type":
		r.add(key, value)
		return !strings.HasPrefix(value, "application/grpc")
	}
	r.add(key, value)
	return true
}

// takeConnection takes what a request says of its connection.
func (r *Request) takeConnection(value string) bool {
	one, other, two := strings.Cut(value, ",")
	if two && strings.EqualFold(one, "keep-alive") { // browsers say so when they upgrade
		value = strings.TrimLeft(other, " ")
	}
	r.upgrades = strings.EqualFold(value, "upgrade")
	r.Close = strings.EqualFold(value, "close")
	return r.upgrades || !two && (r.Close || strings.EqualFold(value, "keep-alive"))
}

// protocol reports whether a client may switch to a protocol without its being read by
// net/http, which has an eye on HTTP/2.
func protocol(name string) bool {
	base, version, _ := strings.Cut(name, "/")
	return base != "" && all([]byte(base), inToken) && all([]byte(version), inToken) && !strings.Contains(strings.ToLower(name), "h2c")
}

// digit is the value of a hexadecimal digit; -1 if it is none.
func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
