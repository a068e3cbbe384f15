package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// dashboard is a dashboard of Grafana, as far as it asks for data.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type, Regex string
			Query             json.RawMessage
		}
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func readMonitoring(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs/monitoring", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readDashboard(t testing.TB, name string) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(readMonitoring(t, name), &d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(d.Panels) == 0 || len(d.Templating.List) != 2 {
		t.Fatalf("%s has %d panels and %d variables", name, len(d.Panels), len(d.Templating.List))
	}
	return d
}

// exprs are the queries of the panels, with the value of the variable besides the data source.
func (d *dashboard) exprs(variable, value string) (all []string) {
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$"+variable, value, "$__rate_interval", "1m").Replace(target.Expr))
		}
	}
	return all
}

// variable is the query of the variable besides the data source, within its function.
func (d *dashboard) variable(t testing.TB, name, function string) (query string, regex *regexp.Regexp) {
	t.Helper()
	v := d.Templating.List[1]
	var asked struct{ Query string }
	if err := json.Unmarshal(v.Query, &asked); err != nil || v.Name != name {
		t.Fatalf("the variable %s: %v", v.Name, err)
	}
	query, begins := strings.CutPrefix(asked.Query, function+"(")
	query, ends := strings.CutSuffix(query, ")")
	if !begins || !ends {
		t.Fatalf("the variable %s is %q", name, asked.Query)
	}
	return query, regexp.MustCompile(strings.ReplaceAll(strings.Trim(v.Regex, "/"), "?<", "?P<"))
}

// Each query of the dashboard of an app has an answer, by the data source of the log cache.
func TestAppDashboard(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("probe")
	boardAnswers(d, "grafana-app.json", "app", "probe", d.App("probe"), func() { d.Answers("probe", "ready") })
}

// Each query of the dashboard of a service instance has an answer, too.
func TestServiceDashboard(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "smtp")
	d.Prepared("smtp")
	boardAnswers(d, "grafana-service.json", "service", "outbox", d.DataInstance("smtp", "outbox"), func() {})
}

// boardAnswers wants the variable of a dashboard to find a source by its name, and an answer to each query about it, while
// use uses it.
func boardAnswers(d *e2e.Daemon, file, variable, name, guid string, use func()) {
	d.T.Helper()
	board := readDashboard(d.T, file)
	ctx, c := context.Background(), asPrometheus(d.T, d, basic("admin", e2e.AdminPassword))
	query, regex := board.variable(d.T, variable, "query_result")
	e2e.Eventually(d.T, time.Minute, func() string {
		found, _, _, err := c.Query(ctx, query, time.Now())
		if vector, ok := found.(model.Vector); err != nil || !ok || len(vector) != 1 {
			return fmt.Sprintf("%s: got %v, %v", query, found, err)
		}
		got := regex.FindStringSubmatch(found.String())
		if len(got) == 0 || !slices.Equal(got[1:], []string{name, guid}) {
			d.T.Fatalf("the variable's pattern finds %q in %q", got, found)
		}
		return ""
	})
	for _, expr := range board.exprs(variable, guid) {
		e2e.Eventually(d.T, 90*time.Second, func() string {
			use()
			found, _, _, err := c.QueryRange(ctx, expr, prometheus.Range{Start: time.Now().Add(-time.Minute), End: time.Now(), Step: time.Second})
			if err != nil {
				d.T.Fatalf("%s: %v", expr, err)
			}
			if m, ok := found.(model.Matrix); !ok || len(m) == 0 {
				return expr + " has no answer"
			}
			return ""
		})
	}
}

// scraped is what a Prometheus has of a target.
type scraped map[string]*scrapedSeries

type scrapedSeries struct {
	labels   labels.Labels
	chunk    *chunkenc.XORChunk
	appender chunkenc.Appender
}

// Querier gives all of it: times do not matter to the engine's own bounds.
func (s scraped) Querier(int64, int64) (storage.Querier, error) {
	return scrapedQuerier{storage.NoopQuerier(), s}, nil
}

type scrapedQuerier struct {
	storage.Querier
	all scraped
}

func (q scrapedQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return &selected{SeriesSet: storage.EmptySeriesSet(), left: q.all.matching(matchers)}
}

// selected are series, one after the other.
type selected struct {
	storage.SeriesSet
	at   storage.Series
	left []storage.Series
}

// Next goes on to the next series.
func (s *selected) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

// At is the series.
func (s *selected) At() storage.Series { return s.at }

func (s scraped) matching(matchers []*labels.Matcher) (found []storage.Series) {
	for _, one := range s {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found = append(found, &storage.SeriesEntry{Lset: one.labels, SampleIteratorFn: one.chunk.Iterator})
		}
	}
	return found
}

// add adds a sample as Prometheus does, with the labels of the target.
func (s scraped) add(metric labels.Labels, at time.Time, value float64) error {
	l := labels.NewBuilder(metric).Set("job", "cupola").Set("instance", "here").Labels()
	one := s[l.String()]
	if one == nil {
		one = &scrapedSeries{labels: l, chunk: chunkenc.NewXORChunk()}
		var err error
		if one.appender, err = one.chunk.Appender(); err != nil {
			return err
		}
		s[l.String()] = one
	}
	one.appender.Append(0, at.UnixMilli(), value)
	return nil
}

// scrape reads /metrics as of a time.
func (s scraped) scrape(url string, at time.Time) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if err := s.add(labels.FromStrings("__name__", "up"), at, 1); err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		metric, err := parser.NewParser(parser.Options{}).ParseMetric(line[:cut])
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if err := s.add(metric, at, value); err != nil {
			return err
		}
	}
	return nil
}

// answer evaluates a query at a time, and fails if it selects anything that is not there.
func (s scraped) answer(t *testing.T, query string, at time.Time) promql.Vector {
	t.Helper()
	p := parser.NewParser(parser.Options{})
	expr, err := p.ParseExpr(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, selector := range parser.ExtractSelectors(expr) {
		if len(s.matching(selector)) == 0 {
			t.Errorf("%s: the daemon has nothing that %v selects", query, selector)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100_000, Timeout: time.Minute, Parser: p})
	q, err := engine.NewInstantQuery(t.Context(), s, nil, query, at)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return vector
}

// The machine's dashboard and the alert rules ask for what a daemon has. Each panel has an
// answer, and no alert fires where all is well.
func TestMachineDashboardAndRules(t *testing.T) {
	t.Parallel()
	port := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--metrics", port, "--backup-to", t.TempDir(), "--backup-recipient", key.Recipient().String())
	d.PushProbe("probe")
	d.Answers("probe", "ready")
	d.Running("probe", "web", 1)
	all, at := scraped{}, time.Now()
	e2e.Eventually(t, time.Minute, func() string { // the first scrape is after the control loop's first look at the app
		fresh := scraped{}
		if err := fresh.scrape("http://"+port+"/metrics", at); err != nil {
			return err.Error()
		}
		if v := fresh.answer(t, `firehose_value_metric_bbs_lr_ps_running`, at); len(v) != 1 || v[0].F != 1 {
			return fmt.Sprintf("running: %v", v)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(fresh)), func(key string) bool { return strings.Contains(key, "cupola_backup_behind_seconds") }) {
			return "there is no backup yet"
		}
		return ""
	})
	for range 5 {
		d.Answers("probe", "ready")
		if err := all.scrape("http://"+port+"/metrics", at); err != nil {
			t.Fatal(err)
		}
		at = at.Add(15 * time.Second)
	}
	at = at.Add(-15 * time.Second)
	board := readDashboard(t, "grafana-machine.json")
	query, _ := board.variable(t, "job", "label_values")
	metric, label, _ := strings.Cut(query, ", ")
	if v := all.answer(t, metric, at); len(v) != 1 || v[0].Metric.Get(label) != "cupola" {
		t.Errorf("the variable: got %v", v)
	}
	for _, expr := range board.exprs("job", "cupola") {
		if len(all.answer(t, expr, at)) == 0 {
			t.Errorf("%s has no answer", expr)
		}
	}
	groups, errs := rulefmt.Parse(readMonitoring(t, "prometheus-rules.yml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 || len(groups.Groups) == 0 {
		t.Fatal("the rules: ", errs)
	}
	for _, rule := range groups.Groups[0].Rules {
		if v := all.answer(t, rule.Expr, at); len(v) > 0 {
			t.Errorf("%s fires: %v", rule.Alert, v)
		}
	}
}
