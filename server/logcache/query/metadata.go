package query

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
)

// metricMeta says what a metric is, as Prometheus has it.
type metricMeta struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// metrics are the metrics of apps and service instances.
var metrics = map[string]metricMeta{
	"cpu":                           {"gauge", "CPU time that the instance uses, in percent of one processor.", "percentage"},
	"cpu_entitlement":               {"gauge", "CPU time that the instance uses, in percent of what it is entitled to.", "percentage"},
	"memory":                        {"gauge", "Memory that the instance uses.", "bytes"},
	"memory_quota":                  {"gauge", "Memory limit of the instance.", "bytes"},
	"disk":                          {"gauge", "Disk space that the instance uses.", "bytes"},
	"disk_quota":                    {"gauge", "Disk limit of the instance.", "bytes"},
	"persistent_disk":               {"gauge", "Disk space that the service instance uses of its volume.", "bytes"},
	"persistent_disk_quota":         {"gauge", "Size of the service instance's volume.", "bytes"},
	"connections":                   {"gauge", "TCP connections from clients to the service instance.", ""},
	"log_rate":                      {"gauge", "Log output of the instance in a second.", "B/s"},
	"log_rate_limit":                {"gauge", "Limit of the log output in a second; -1 is none.", "B/s"},
	"absolute_usage":                {"gauge", "CPU time that the instance has used.", "nanoseconds"},
	"absolute_entitlement":          {"gauge", "CPU time that the instance was entitled to.", "nanoseconds"},
	"container_age":                 {"gauge", "Time since the container of the instance was created.", "nanoseconds"},
	"http":                          {"gauge", "How long one of the newest requests took.", "nanoseconds"},
	"http_requests_total":           {"counter", "Requests that were answered.", ""},
	"http_request_duration_seconds": {"histogram", "How long requests took.", "seconds"},
}

// metadata answers what the metrics are; metric is the name of one.
func (s *server) metadata(w http.ResponseWriter, r *http.Request) {
	limit, err := parseCount(r, "limit")
	if err != nil {
		fail(w, http.StatusBadRequest, badData, err)
		return
	}
	all := map[string][]metricMeta{}
	for name, m := range metrics {
		if only := r.FormValue("metric"); (only == "" || only == name) && (limit == 0 || len(all) < limit) {
			all[name] = []metricMeta{m}
		}
	}
	s.known(all)(w, r)
}

// buildInfo says which Prometheus it is, by which clients decide what they may ask.
func buildInfo() map[string]string {
	return map[string]string{"version": engineVersion(), "revision": "", "branch": "", "buildUser": "", "buildDate": "", "goVersion": runtime.Version()}
}

// engineVersion is the version of Prometheus whose engine this is: its module v0.304.1 is
// Prometheus 3.4.1.
func engineVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return oldestEngine
	}
	for _, m := range info.Deps {
		if minor, found := strings.CutPrefix(m.Version, "v0.3"); found && m.Path == "github.com/prometheus/prometheus" && len(minor) > 2 {
			return "3." + strings.TrimPrefix(minor[:2], "0") + minor[2:]
		}
	}
	return oldestEngine
}

// oldestEngine is a version that all of this is in.
const oldestEngine = "3.4.0"
