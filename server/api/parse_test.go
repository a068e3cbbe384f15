package api

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/orgs"
	"cupola/server/control/routes"
	"cupola/server/control/stacks"
	"cupola/store"
)

func TestParseSelector(t *testing.T) {
	for _, c := range []struct {
		text string
		want []store.Label
	}{
		{"a", []store.Label{{Key: "a", Op: store.LabelExists}}},
		{"!a", []store.Label{{Key: "a", Op: store.LabelNotExists}}},
		{"a=b,c==d", []store.Label{{Key: "a", Op: store.LabelIn, Values: []string{"b"}}, {Key: "c", Op: store.LabelIn, Values: []string{"d"}}}},
		{"a!=b", []store.Label{{Key: "a", Op: store.LabelNotIn, Values: []string{"b"}}}},
		{"x.y/env in (a, b),tier notin (c)", []store.Label{{Key: "x.y/env", Op: store.LabelIn, Values: []string{"a", "b"}}, {Key: "tier", Op: store.LabelNotIn, Values: []string{"c"}}}},
	} {
		got, err := parseSelector(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.text, d)
		}
	}
	for _, text := range []string{"", ",", "a b", "a in b", "a=b=c", "a in (b", "=b", `a"`, "a in (b) c"} {
		if got, err := parseSelector(text); err == nil {
			t.Errorf("%q was taken as %v", text, got)
		}
	}
}

func TestParseQuery(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"per_page=0", "Per page must be a positive integer"},
		{"per_page=5001", "Per page must be between 1 and 5000"},
		{"page=x", "Page must be a positive integer"},
		{"order_by=size", "Order by can only be: "},
		{"what=1", "Unknown query parameter(s): 'what'. Valid parameters are: 'created_ats', "},
		{"created_ats[gt]=yesterday", "created_ats has an invalid timestamp format."},
		{"created_ats[almost]=2020-01-01T00:00:00Z", "created_ats has an invalid operator: 'almost'"},
		{"label_selector=" + strings.Repeat("!a,", 1999) + "!a", "Too many label_selector requirements (maximum is 50)"},
		{"include=space,moon", "Invalid included resource: 'moon'."},
	} {
		v, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseValues(v, store.Apps, appIncludes); err == nil || !strings.Contains(err.Error(), "The query parameter is invalid: "+c.want) {
			t.Errorf("%s: got %v; want %s", c.query, err, c.want)
		}
	}
	// A comma in a name comes encoded once more, and an empty value is one.
	q, err := parseValues(url.Values{"names": {"a%2Cb,c"}, "guids": {""}, "order_by": {"-name"}}, store.Apps)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"names": {"a,b", "c"}, "guids": {""}}
	if d := cmp.Diff(want, q.Where); d != "" || q.Order != "name" || !q.Desc {
		t.Errorf("%s; order %s, descending %v", d, q.Order, q.Desc)
	}
}

// Whatever a client asks, the store can answer what parseQuery took.
func FuzzParseQuery(f *testing.F) {
	for _, q := range []string{"names=a,b&page=2&per_page=50&order_by=-name", "label_selector=a,!b,c in (d,e)", "created_ats[lt]=2020-01-01T00:00:00Z&include=space",
		"hosts=&paths=", "names=%2525,%27%22;--&guids=%00", `label_selector=a"b`} {
		f.Add(q)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := parseValues(v, store.Apps, appIncludes)
		if err != nil {
			return
		}
		err = w.store.Read(t.Context(), func(tx *store.Tx) error {
			_, _, err := store.Apps.List(tx, q.Query)
			return err
		})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, body := range []string{`{"name": "a", "lifecycle": {"type": "buildpack", "data": {"buildpacks": null}}, "environment_variables": {"a": null, "b": 1}}`,
		`{"relationships": {"space": {"data": null}}, "metadata": {"labels": {"a": null}}}`, `[]`, `{"name": 7}`, `{"x": 1}`, "", "null"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, v := range []any{new(apps.NewApp), new(routes.New), new(orgs.NewRole), new(orgs.QuotaChange), new(orgs.SecurityGroupChange), new(apps.NewTask), new(stacks.BuildpackChange)} {
			err := decodeStrict([]byte(body), v)
			if err != nil && !control.IsKind(err, "UnprocessableEntity") && !control.IsKind(err, "MessageParseError") {
				t.Errorf("%q: got %v; want a client's fault", body, err)
			}
			if x, ok := v.(interface{ Validate() []string }); err == nil && ok {
				x.Validate()
			}
		}
	})
}
