package wire

import "strings"

// Response is the head of a plain answer.
type Response struct {
	Head
	Status  int
	Length  int64 // of the body as announced; -1 unknown
	Chunked bool
	Close   bool // the connection has no other answer
}

// Parse reads the head that p begins with, and returns its length.
func (r *Response) Parse(p []byte) (int, Verdict) {
	first, n, v := line(p)
	if v != Plain {
		return 0, v
	}
	status, ok := statusLine(first)
	if !ok {
		return 0, Odd
	}
	end, v := r.scan(p, n)
	if v != Plain {
		return 0, v
	}
	text := string(p[:end])
	r.reset()
	r.Status, r.Length, r.Chunked, r.Close = status, -1, false, false
	for i, f := range r.fields {
		if !r.take(r.key(text, i), text[f.value:f.valueEnd]) {
			return 0, Odd
		}
	}
	if r.Chunked && r.Length >= 0 || pragma(r.Header) {
		return 0, Odd
	}
	return end, Plain
}

// statusLine reads a status of three digits.
func statusLine(p []byte) (status int, ok bool) {
	const version = "HTTP/1.1 "
	if len(p) < len(version)+3 || string(p[:len(version)]) != version || !all(p[len(version):], inValue) {
		return 0, false
	}
	code, rest := p[len(version):len(version)+3], p[len(version)+3:]
	if len(rest) > 0 && rest[0] != ' ' {
		return 0, false
	}
	for _, c := range code {
		if c < '0' || c > '9' {
			return 0, false
		}
		status = status*10 + int(c-'0')
	}
	return status, status >= 100
}

// take takes a header; false if it makes the answer odd.
func (r *Response) take(key, value string) bool {
	switch key {
	case "Content-Length":
		n, ok := length(value)
		ok = ok && r.Length < 0
		r.Length = n
		r.add(key, value)
		return ok
	case "Transfer-Encoding":
		ok := !r.Chunked && strings.EqualFold(value, "chunked")
		r.Chunked = true
		return ok
	case "Trailer":
		return false
	case "Connection":
		for token := range strings.SplitSeq(value, ",") {
			r.Close = r.Close || strings.EqualFold(strings.Trim(token, " \t"), "close")
		}
	}
	r.add(key, value)
	return true
}
