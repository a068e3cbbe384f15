package logs

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"cupola/test/e2e"
)

// authorized sends an Authorization with each request.
type authorized string

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// asPrometheus is Prometheus' own client of the log cache.
func asPrometheus(t testing.TB, d *e2e.Daemon, authorization string) prometheus.API {
	t.Helper()
	c, err := api.NewClient(api.Config{Address: "http://" + d.Addr, RoundTripper: authorized(authorization)})
	if err != nil {
		t.Fatal(err)
	}
	return prometheus.NewAPI(c)
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// auditor makes a space with an auditor, and returns its GUID.
func auditor(d *e2e.Daemon, name, password string) (space string) {
	var user struct{ ID string }
	d.API("POST", "/Users", e2e.Doc{"userName": name, "password": password, "emails": []e2e.Doc{{"value": name}}}, &user)
	org := d.First("/v3/organizations?names=cupola")
	var made struct{ GUID string }
	d.API("POST", "/v3/spaces", e2e.Doc{"name": "of-" + name, "relationships": e2e.Doc{"organization": e2e.ToOne(org)}}, &made)
	d.API("POST", "/v3/roles", e2e.Doc{"type": "organization_user", "relationships": e2e.Doc{"user": e2e.ToOne(user.ID), "organization": e2e.ToOne(org)}}, nil)
	d.API("POST", "/v3/roles", e2e.Doc{"type": "space_auditor", "relationships": e2e.Doc{"user": e2e.ToOne(user.ID), "space": e2e.ToOne(made.GUID)}}, nil)
	return made.GUID
}

// TestGrafana asks the log cache what a data source of Grafana asks, with Prometheus' own
// client. The admin sees the app; the auditor of another space sees none of it.
func TestGrafana(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "smtp")
	d.Prepared("smtp")
	d.PushProbe("probe")
	guid, instance := d.App("probe"), d.DataInstance("smtp", "outbox")
	d.Answers("probe", "ready")
	auditor(d, "grafana", "pw-of-grafana")

	ctx, all := context.Background(), asPrometheus(t, d, basic("admin", e2e.AdminPassword))
	begin, end := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	e2e.Eventually(t, time.Minute, func() string {
		names, warnings, _, err := all.LabelValues(ctx, "__name__", []string{`{source_id=~"` + guid + `|` + instance + `"}`}, begin, end)
		if err != nil || len(warnings) > 0 {
			return fmt.Sprintf("names: %v, %v", err, warnings)
		}
		described, err := all.Metadata(ctx, "", "")
		if err != nil {
			return "metadata: " + err.Error()
		}
		for _, name := range names {
			family := string(name)
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				family = strings.TrimSuffix(family, part)
			}
			if len(described[family]) != 1 {
				t.Fatalf("%s has no metadata", family)
			}
		}
		for name := range described {
			if !slices.ContainsFunc(names, func(n model.LabelValue) bool { return strings.HasPrefix(string(n), name) }) {
				return name + " is described, and not there"
			}
		}
		return ""
	})
	for _, authorization := range []string{basic("admin", e2e.AdminPassword), basic("grafana", "pw-of-grafana")} {
		c := asPrometheus(t, d, authorization)
		for _, test := range []string{"1+1", "vector(1)+vector(1)"} { // of "Save & test"
			if v, _, _, err := c.Query(ctx, test, time.Now()); err != nil || !strings.Contains(v.String(), "2 @[") && !strings.Contains(v.String(), "scalar: 2") {
				t.Errorf("%s: got %v, %v", test, v, err)
			}
		}
		if info, err := c.Buildinfo(ctx); err != nil || !strings.HasPrefix(info.Version, "3.") {
			t.Errorf("buildinfo: got %+v, %v", info, err)
		}
		if rules, err := c.Rules(ctx, nil); err != nil || len(rules.Groups) > 0 {
			t.Errorf("rules: got %+v, %v", rules, err)
		}
		reads(ctx, t, c, guid, authorization == basic("admin", e2e.AdminPassword))
	}
	for _, wrong := range []string{"", "Bearer nonsense", basic("grafana", "wrong")} {
		if _, _, _, err := asPrometheus(t, d, wrong).LabelNames(ctx, nil, begin, end); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("as %q: got %v; want 401", wrong, err)
		}
	}
}

// reads fails unless c finds what there is of an app if it sees it, and else nothing.
func reads(ctx context.Context, t *testing.T, c prometheus.API, guid string, sees bool) {
	t.Helper()
	begin, end := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	values, _, _, err := c.LabelValues(ctx, "source_id", nil, begin, end)
	if err != nil || slices.Contains(values, model.LabelValue(guid)) != sees {
		t.Errorf("values: got %v, %v; the app is visible: %t", values, err, sees)
	}
	names, _, _, err := c.LabelNames(ctx, []string{"memory"}, begin, end)
	if err != nil || slices.Contains(names, "app_name") != sees {
		t.Errorf("labels: got %v, %v; the app is visible: %t", names, err, sees)
	}
	series, _, _, err := c.Series(ctx, []string{`memory{process_type="web"}`}, begin, end)
	if err != nil || (len(series) == 1) != sees {
		t.Errorf("series: got %v, %v; the app is visible: %t", series, err, sees)
	}
	span := prometheus.Range{Start: time.Now().Add(-10 * time.Minute), End: time.Now(), Step: 15 * time.Second}
	found, _, _, err := c.QueryRange(ctx, `memory{source_id=~".+",app_name!=""}`, span)
	if m, ok := found.(model.Matrix); err != nil || !ok || (len(m) == 1) != sees {
		t.Errorf("a range of all apps: got %v, %v; the app is visible: %t", found, err, sees)
	}
	if _, _, _, err = c.QueryRange(ctx, `memory{source_id="`+guid+`"}`, span); (err == nil) != sees {
		t.Errorf("a range of the app: got %v; the app is visible: %t", err, sees)
	}
}
