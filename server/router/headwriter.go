package router

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// headWriter writes the heads of requests and answers as net/http does: headers
// in the order of their names.
type headWriter struct{ keys []string }

// request appends the head of a forwarded request, whose body has a length.
func (w *headWriter) request(b []byte, method, target, host string, h http.Header, length int64) []byte {
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\n"...)
	b = appendField(b, "Host", host)
	if agent := h["User-Agent"]; len(agent) > 0 && agent[0] != "" {
		b = appendField(b, "User-Agent", agent[0])
	}
	if length > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, "\r\n"...)
	}
	for _, key := range w.sorted(h) {
		if key == "User-Agent" || key == "Content-Length" {
			continue
		}
		b = appendFields(b, key, h[key])
	}
	return append(b, "\r\n"...)
}

// status appends the first line of an answer.
func (w *headWriter) status(b []byte, status int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = append(b, "status code "...)
		b = strconv.AppendInt(b, int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// response appends the head of an answer, but for what the caller says of its body
// and the connection, and the empty line.
func (w *headWriter) response(b []byte, status int, h http.Header) []byte {
	b = w.status(b, status)
	b = w.fields(b, h)
	if _, ok := h["Date"]; !ok {
		b = append(b, "Date: "...)
		b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
		b = append(b, "\r\n"...)
	}
	return b
}

func (w *headWriter) fields(b []byte, h http.Header) []byte {
	for _, key := range w.sorted(h) {
		b = appendFields(b, key, h[key])
	}
	return b
}

// sorted are the names of headers. They are valid until the next call.
func (w *headWriter) sorted(h http.Header) []string {
	w.keys = w.keys[:0]
	for key := range h {
		w.keys = append(w.keys, key)
	}
	slices.Sort(w.keys)
	return w.keys
}

func appendFields(b []byte, key string, values []string) []byte {
	for _, value := range values {
		b = appendField(b, key, value)
	}
	return b
}

func appendField(b []byte, key, value string) []byte {
	b = append(b, key...)
	b = append(b, ": "...)
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		value = strings.TrimSpace(strings.NewReplacer("\n", " ", "\r", " ").Replace(value))
	}
	b = append(b, value...)
	return append(b, "\r\n"...)
}
