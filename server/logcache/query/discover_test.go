package query

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/logcache/history"
)

// Names and values are those of the sources that the caller may read, whatever is asked.
func TestDiscovery(t *testing.T) {
	c := measured()
	at := []string{"start", "1000", "end", "1300"}
	list := func(all string) string { return `200 {"status":"success","data":` + all + `}` }
	bad := func(why string) string { return `400 {"status":"error","errorType":"bad_data","error":"` + why + `"}` }
	tests := []struct {
		path   string
		values []string
		want   string
	}{
		{"labels", at, list(`["__name__","instance_id","origin","process_type","source_id","status_code"]`)},
		{"labels", append([]string{"match[]", "cpu"}, at...), list(`["__name__","instance_id","origin","process_type","source_id"]`)},
		{"labels", append([]string{"limit", "2"}, at...), `200 {"status":"success","data":["__name__","instance_id"],"warnings":["results truncated due to limit"]}`},
		{"label/source_id/values", at, list(`["a"]`)},
		{"label/__name__/values", at, list(`["cpu","http","http_latency"]`)},
		{"label/status_code/values", at, list(`["200","500"]`)},
		{"label/source_id/values", append([]string{"match[]", `cpu{source_id="theirs"}`}, at...), list(`[]`)},
		{"label/source_id/values", []string{"start", "2000", "end", "2100"}, list(`[]`)},
		{"label/source_id/values", []string{"end", "1300", "start", "soon"}, bad(`cannot parse \"soon\" of \"start\" to a valid timestamp`)},
		{"label/source-id/values", at, bad(`invalid label name: \"source-id\"`)},
		{"labels", []string{"start", "1300", "end", "1000"}, bad("end timestamp must not be before start time")},
		{"labels", append([]string{"limit", "-1"}, at...), bad(`invalid parameter \"limit\": \"-1\" is not a number of 0 or more`)},
		{"series", at, bad("no match[] parameter provided")},
		{"series", append([]string{"match[]", "cpu{"}, at...), bad(`invalid parameter \"match[]\": 1:5: parse error: unexpected end of input inside braces`)},
		{"series", append([]string{"match[]", `cpu{instance_id="1"}`}, at...), list(`[{"__name__":"cpu","instance_id":"1","origin":"rep","process_type":"web","source_id":"a"}]`)},
		{"series", append([]string{"match[]", `{source_id="theirs"}`}, at...), list(`[]`)},
		{"metadata", []string{"metric", "cpu"}, list(`{"cpu":[{"type":"gauge","help":"CPU time that the instance uses, in percent of one processor.","unit":"percentage"}]}`)},
		{"query_exemplars", at, list(`[]`)},
		{"rules", nil, list(`{"groups":[]}`)},
		{"rules/test/test", nil, "404 404 page not found"}, // by which Grafana knows that rules cannot be edited
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ask(c, tt.path, tt.values...)); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tt.path, tt.values, diff)
		}
	}
}

// Names come from every resolution of the history that a time is in.
func TestDiscoveryOfTheHistory(t *testing.T) {
	p := newPast(t)
	begin := p.at
	for p.at < begin+5*86400 {
		p.at += 15
		if p.at < begin+86400 {
			p.append(history.Last, "of_the_first_day", 1)
		}
		p.append(history.Last, "of_each_day", 1)
	}
	for _, tt := range []struct {
		start, end int64
		want       string
	}{
		{begin, p.at, `["of_each_day","of_the_first_day"]`},
		{begin, begin + 3600, `["of_each_day","of_the_first_day"]`},
		{p.at - 3600, p.at, `["of_each_day"]`},
		{p.at - 15, p.at, `["of_each_day"]`},
		{p.at + 86400, p.at + 2*86400, `[]`},
	} {
		got := ask(p.Cache, "label/__name__/values", "start", fmt.Sprint(tt.start), "end", fmt.Sprint(tt.end))
		if want := `200 {"status":"success","data":` + tt.want + `}`; got != want {
			t.Errorf("%d s to %d s: got %s; want %s", tt.start-begin, tt.end-begin, got, want)
		}
	}
}
