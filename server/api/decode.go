package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/message"
	"cupola/store/cf"
)

// maxBody bounds a JSON body; bytes.
const maxBody = 2 << 20

// decode reads the body into v, a pointer to a struct of JSON fields. What
// does not fit is a 422 that names the field; a Validate method of v may find
// more. The session keeps the request as audit events show it.
func decode(c *call, v any) error {
	body, err := readBody(c.Request, maxBody)
	if err != nil {
		return err
	}
	c.Asked = control.Audited(body)
	return decodeBody(c, body, v)
}

// decodeBody is decode for a body that was read.
func decodeBody(c *call, body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err := checkMessage(body, messageOf(c, v), cf.UnprocessableEntity, ""); err != nil {
		return err
	}
	if err := decodeStrict(body, v); err != nil {
		return err
	}
	if x, ok := v.(interface{ Validate() []string }); ok {
		return control.Invalid(x.Validate())
	}
	return nil
}

// checkMessage checks a body as Cloud Controller does; what is wrong with it is an
// error of the kind.
func checkMessage(body []byte, m checks, kind cf.Kind, prefix string) error {
	if m == nil {
		return nil
	}
	o, err := message.Parse(body)
	if err != nil {
		return invalidBody()
	}
	if faults := m.Faults(o); faults != nil {
		return cf.Errorf(kind, "%s%s", prefix, strings.Join(faults, ", "))
	}
	return nil
}

// invalidBody is the error for a body that is not JSON.
func invalidBody() error {
	return cf.Errorf(cf.MessageParseError, "Request invalid due to parse error: invalid request body")
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
		return invalidBody()
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
		return invalidBody()
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
// "Memory in mb". encoding/json puts the names of embedded structs in paths.
func sentence(path string) string {
	embedded := func(name string) bool { return strings.ContainsFunc(name, unicode.IsUpper) }
	s := strings.ReplaceAll(strings.Join(slices.DeleteFunc(strings.Split(path, "."), embedded), "."), "_", " ")
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

// Relationships to one thing and to several.
type (
	ref  = change.ToOne
	refs = change.ToMany
)
