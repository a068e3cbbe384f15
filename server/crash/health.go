package crash

import (
	"regexp"
	"strings"

	"cupola/runtime/pattern"
)

// listens is what the cell adds to the description of a health check that failed.
const listens = "; the app listens on "

// What Diego says of health checks that failed, and Kubernetes of probes, and how to mend it.
var healthPatterns = []struct {
	text   func() *regexp.Regexp
	advice string
}{
	{pattern.Lazy(`failed to make HTTP request to ('[^']*') on port (\d+): received status code (\d+)`),
		"the app answered GET $1 on port $2 with status $3, and must answer 200: correct it, or name another path with health-check-http-endpoint, or have the health check type port"},
	{pattern.Lazy(`failed to make HTTP request to ('[^']*') on port (\d+): timed out after (\S+) seconds`),
		"the app took longer than $3 s to answer GET $1 on port $2: answer faster there, or set a longer health-check-invocation-timeout"},
	{pattern.Lazy(`failed to make HTTP request to ('[^']*') on port (\d+): connection refused`),
		"the app closed the connection of GET $1 on port $2 without an HTTP answer: speak HTTP there, or have the health check type port"},
	{pattern.Lazy(`failed to make TCP connection to \S+:(\d+): timed out after (\S+) seconds`),
		"the app listens on port $1, and took longer than $2 s to accept a connection: accept connections while it works, or set a longer health-check-invocation-timeout"},
	{pattern.Lazy(`HTTP probe failed with statuscode: (\d+)`),
		"the app answered with status $1, and must answer 200: correct it, or name another path with health-check-http-endpoint, or have the health check type port"},
	{pattern.Lazy(`dial tcp \S+:(\d+): connect: connection refused`),
		"nothing listens on port $1: the app must listen on 0.0.0.0 and the port in $$PORT, sooner or with a longer timeout in its manifest, or have the health check type process"},
	{pattern.Lazy(`context deadline exceeded|: i/o timeout`),
		"the app took too long to answer: answer faster, or set a longer health-check-invocation-timeout"},
}

// healthCause is why a health check failed, and how to mend it; "" where the description is of something else.
func healthCause(description string) string {
	if _, hint, found := strings.Cut(description, listens); found {
		return "the app listens on " + hint
	}
	if !strings.HasPrefix(description, "Instance never healthy") && !strings.HasPrefix(description, "Instance became unhealthy") {
		return ""
	}
	for _, p := range healthPatterns {
		if m := p.text().FindStringSubmatchIndex(description); m != nil {
			return string(p.text().ExpandString(nil, p.advice, description, m))
		}
	}
	return ""
}
