package router

import (
	"bytes"
	"strconv"
)

// framing is what a request's head says of the body that follows it.
type framing struct {
	refuse  bool // it says so in more than one way
	http2   bool // it is HTTP/2's preface: no HTTP/1 follows
	chunked bool
	length  uint64
}

// frame reads a head, from the request line to the empty line.
func frame(head []byte) framing {
	request, rest, _ := bytes.Cut(head, []byte("\n"))
	if bytes.HasPrefix(request, []byte("PRI * HTTP/2.0")) {
		return framing{http2: true}
	}
	var f framing
	lengths, encodings := 0, 0
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(line) == 0 || line[0] == '\r' {
			break
		}
		switch line[0] {
		case ' ', '\t':
			return framing{refuse: true} // folded
		case 'c', 'C':
			if value, ok := header(line, "content-length"); ok {
				lengths++
				f.readLength(value)
			}
		case 't', 'T':
			if value, ok := header(line, "transfer-encoding"); ok {
				encodings++
				f.readEncoding(value)
			}
		}
	}
	// HTTP/1.0 has no chunked encoding: a proxy in front may disagree about
	// the end of the body.
	old := bytes.HasSuffix(bytes.TrimRight(request, "\r"), []byte("HTTP/1.0"))
	f.refuse = f.refuse || lengths > 1 || encodings > 1 || lengths > 0 && encodings > 0 || old && encodings > 0
	return f
}

// header is the value of a line if it is the header name, in lower case.
// Space before the colon counts: others may take it for the same header.
func header(line []byte, name string) ([]byte, bool) {
	key, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || !bytes.EqualFold(bytes.TrimSpace(key), []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(value), true
}

func (f *framing) readLength(value []byte) {
	for _, c := range value {
		if c < '0' || c > '9' {
			f.refuse = true // a sign, a list, a hex number
			return
		}
	}
	n, err := strconv.ParseUint(string(value), 10, 63)
	f.length, f.refuse = n, f.refuse || err != nil
}

func (f *framing) readEncoding(value []byte) {
	f.chunked = bytes.EqualFold(value, []byte("chunked"))
	f.refuse = f.refuse || !f.chunked
}
