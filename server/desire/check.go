package desire

import (
	"strconv"
	"time"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// check is a process' liveness check. Cloud Controller checks the port of web
// processes and nothing of others, unless told otherwise.
func check(h cf.HealthCheck, processType string, port uint16) lrp.Check {
	c := lrp.Check{Type: lrp.CheckType(h.Type), InvocationTimeout: seconds(h.InvocationTimeout), Interval: seconds(h.Interval)}
	if c.Type == "" {
		c.Type = lrp.CheckProcess
		if processType == "web" {
			c.Type = lrp.CheckPort
		}
	}
	return probe(c, h.Endpoint, port)
}

func readiness(h cf.HealthCheck, port uint16) lrp.Check {
	c := lrp.Check{Type: lrp.CheckType(h.Type), InvocationTimeout: seconds(h.InvocationTimeout), Interval: seconds(h.Interval)}
	if c.Type == "" {
		c.Type = lrp.CheckProcess
	}
	return probe(c, h.Endpoint, port)
}

// probe says where c looks. One that looks at the process alone has no timing.
func probe(c lrp.Check, endpoint string, port uint16) lrp.Check {
	switch c.Type {
	case lrp.CheckProcess:
		return lrp.Check{Type: lrp.CheckProcess}
	case lrp.CheckHTTP:
		c.Path = endpoint
		if c.Path == "" {
			c.Path = "/"
		}
	}
	c.Port = port
	return c
}

func startTimeout(h cf.HealthCheck) time.Duration {
	if h.Timeout == 0 {
		return defaultStartTimeout
	}
	return seconds(h.Timeout)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func itoa(port uint16) string { return strconv.Itoa(int(port)) }
