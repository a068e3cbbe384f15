package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/store/cf"
)

// maxBody bounds a JSON body; bytes.
const maxBody = 2 << 20

// decode reads the body into v, a pointer to a struct of JSON fields. What
// does not fit is a 422 that names the field; a validate method of v may find
// more.
func decode(c *call, v any) error {
	body, err := readBody(c.Request, maxBody)
	if err != nil {
		return err
	}
	return decodeBody(body, v)
}

func decodeBody(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err := decodeStrict(body, v); err != nil {
		return err
	}
	if x, ok := v.(interface{ validate() []string }); ok {
		return control.Invalid(x.validate())
	}
	return nil
}

func readBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, brokenBody(err)
	}
	if int64(len(body)) > limit {
		return nil, cf.Errorf(cf.RequestTooLarge, "Bad request: The request body is larger than %d bytes", limit)
	}
	return body, nil
}

// brokenBody is what is wrong with a body that could not be read.
func brokenBody(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return cf.Errorf(cf.RequestTimeout, "Bad request: nothing of the request body came for too long")
	}
	return cf.Errorf(cf.MessageParseError, "Request invalid due to parse error: the body could not be read")
}

func decodeStrict(body []byte, v any) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return cf.Errorf(cf.MessageParseError, "Request invalid due to parse error: invalid request body")
	}
	if unknown := unknownFields(top, reflect.TypeOf(v).Elem()); len(unknown) > 0 {
		return cf.Unprocessable("Unknown field(s): '%s'", strings.Join(unknown, "', '"))
	}
	err := json.Unmarshal(body, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return cf.Unprocessable("%s must be %s", sentence(mismatch.Field), typeName(mismatch.Type))
	}
	var e *cf.Error
	if errors.As(err, &e) {
		return e
	}
	if err != nil {
		return cf.Errorf(cf.MessageParseError, "Request invalid due to parse error: invalid request body")
	}
	return nil
}

func unknownFields(top map[string]json.RawMessage, t reflect.Type) (unknown []string) {
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = true
	}
	for name := range top {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// sentence writes a JSON path as Cloud Controller does: "memory_in_mb" is
// "Memory in mb".
func sentence(path string) string {
	s := strings.ReplaceAll(path, "_", " ")
	if s == "" {
		return "Body"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// opt is a field that may be absent, null or a value.
type opt[T any] struct {
	Set, Null bool
	V         T
}

// UnmarshalJSON is called only for a field that is there.
func (o *opt[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	if string(b) == "null" {
		o.Null = true
		return nil
	}
	return json.Unmarshal(b, &o.V)
}

// or is the value, or another when there is none.
func (o opt[T]) or(other T) T {
	if !o.Set || o.Null {
		return other
	}
	return o.V
}

// ref is a relationship to one thing.
type ref struct {
	Data *struct {
		GUID string `json:"guid"`
	} `json:"data"`
}

func (r ref) guid() string {
	if r.Data == nil {
		return ""
	}
	return r.Data.GUID
}

// refs is a relationship to several things.
type refs struct {
	Data []struct {
		GUID string `json:"guid"`
	} `json:"data"`
}

func (r refs) guids() (out []string) {
	for _, d := range r.Data {
		out = append(out, d.GUID)
	}
	return out
}

// metadataPatch is the "metadata" of a request; null removes a key.
type metadataPatch struct {
	Labels      map[string]*string `json:"labels"`
	Annotations map[string]*string `json:"annotations"`
}

var (
	labelKey   = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)
)

// apply changes m, or says what is wrong in Cloud Controller's words.
func (p *metadataPatch) apply(m *cf.Metadata) error {
	if p == nil {
		return nil
	}
	for k, v := range p.Labels {
		if err := checkLabel(k, v); err != nil {
			return err
		}
	}
	for k, v := range p.Annotations {
		if v != nil && len(*v) > 5000 {
			return cf.Unprocessable("Metadata annotations error: '%.20s...' is greater than 5000 characters", *v)
		}
		if len(k) > 1000 {
			return cf.Unprocessable("Metadata annotations error: '%.20s...' is greater than 1000 characters", k)
		}
	}
	m.Labels = patch(m.Labels, p.Labels)
	m.Annotations = patch(m.Annotations, p.Annotations)
	return metadataFits(m)
}

// Limits of a resource's metadata as a whole: Cloud Controller has none, and each
// list shows all of it. The bytes are those that Kubernetes gives annotations.
const (
	maxMetadata      = 500 // labels, and annotations
	maxMetadataBytes = 256 << 10
)

func metadataFits(m *cf.Metadata) error {
	sum := 0
	for k, v := range m.Annotations {
		sum += len(k) + len(v)
	}
	switch {
	case len(m.Labels) > maxMetadata:
		return cf.Unprocessable("Metadata labels may have at most %d entries, they have %d", maxMetadata, len(m.Labels))
	case len(m.Annotations) > maxMetadata:
		return cf.Unprocessable("Metadata annotations may have at most %d entries, they have %d", maxMetadata, len(m.Annotations))
	case sum > maxMetadataBytes:
		return cf.Unprocessable("Metadata annotations may have at most %d bytes, they have %d", maxMetadataBytes, sum)
	}
	return nil
}

func checkLabel(k string, v *string) error {
	prefix, name, prefixed := strings.Cut(k, "/")
	if !prefixed {
		prefix, name = "", k
	}
	switch {
	case k == "":
		return cf.Unprocessable("Metadata label key error: key cannot be empty string")
	case len(name) > 63 || len(prefix) > 253:
		return cf.Unprocessable("Metadata label key error: '%.20s...' is greater than 63 characters", name)
	case !labelKey.MatchString(k):
		return cf.Unprocessable("Metadata label key error: '%s' contains invalid characters", k)
	case v != nil && len(*v) > 63:
		return cf.Unprocessable("Metadata label value error: '%.20s...' is greater than 63 characters", *v)
	case v != nil && !labelValue.MatchString(*v):
		return cf.Unprocessable("Metadata label value error: '%s' contains invalid characters", *v)
	}
	return nil
}

// patch sets the keys that have a value and removes those that are null.
func patch(m map[string]string, p map[string]*string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = *v
		}
	}
	return out
}
