package desire

import (
	"cmp"
	"strconv"
	"time"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// liveness is how a process is watched. Cloud Controller checks the port of web
// processes and nothing of others, unless configured otherwise.
func liveness(h cf.HealthCheck, processType string, port uint16) []lrp.Check {
	if h.Type == "" && processType == "web" {
		h.Type = string(lrp.CheckPort)
	}
	return checks(h, port)
}

// checks are none where h looks at the process alone.
func checks(h cf.HealthCheck, port uint16) []lrp.Check {
	c := lrp.Check{Type: lrp.CheckType(h.Type), Port: port, InvocationTimeout: seconds(h.InvocationTimeout), Interval: seconds(h.Interval)}
	switch c.Type {
	case lrp.CheckPort:
	case lrp.CheckHTTP:
		c.Path = cmp.Or(h.Endpoint, "/")
	default:
		return nil
	}
	return []lrp.Check{c}
}

// StartTimeout is how long an instance of a process may take to start.
func StartTimeout(p *cf.Process) time.Duration { return startTimeout(p.HealthCheck) }

func startTimeout(h cf.HealthCheck) time.Duration {
	if h.Timeout == 0 {
		return defaultStartTimeout
	}
	return seconds(h.Timeout)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func itoa(port uint16) string { return strconv.Itoa(int(port)) }
