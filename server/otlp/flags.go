package otlp

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Flags are the flags of cupola serve.
type Flags struct {
	Collector string            `name:"open-telemetry" help:"URL of an OpenTelemetry collector that gets metrics and traces, by OTLP over HTTP, like http://localhost:4318; none by default." env:"CUPOLA_OPEN_TELEMETRY" placeholder:"URL"`
	Headers   map[string]string `name:"open-telemetry-header" help:"Headers of requests to the collector, such as a key." mapsep:"," env:"CUPOLA_OPEN_TELEMETRY_HEADER" placeholder:"NAME=VALUE,…"`
	Sample    string            `name:"open-telemetry-sample" help:"How many of the requests that bring no trace are traced, like 1%." default:"1%" env:"CUPOLA_OPEN_TELEMETRY_SAMPLE" placeholder:"PART"`
}

// Check refuses flags that cannot be followed.
func (f Flags) Check() error {
	_, err := f.config()
	return err
}

// Config is what the flags say; nil where nothing is sent.
func (f Flags) Config() *Config {
	c, err := f.config()
	if err != nil { // Check has refused it
		return nil
	}
	return c
}

func (f Flags) config() (*Config, error) {
	sample, err := part(f.Sample)
	if err != nil && (f.Sample != "" || f.Collector != "") {
		return nil, fmt.Errorf("invalid --open-telemetry-sample %q: give a part from 0%% to 100%%", f.Sample)
	}
	c := &Config{Sample: sample, Headers: http.Header{}}
	for name, value := range f.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("invalid --open-telemetry-header %q: give names and values of HTTP headers, like api-key=SECRET", name)
		}
		c.Headers.Set(name, value)
	}
	if f.Collector == "" {
		if len(f.Headers) > 0 {
			return nil, fmt.Errorf("--open-telemetry-header needs --open-telemetry, the collector's URL")
		}
		return nil, nil
	}
	c.URL, err = url.Parse(f.Collector)
	if err != nil || c.URL.Scheme != "http" && c.URL.Scheme != "https" || c.URL.Host == "" || c.URL.RawQuery != "" || c.URL.Fragment != "" {
		return nil, fmt.Errorf("invalid --open-telemetry: give the URL of a collector's OTLP receiver over HTTP, like http://localhost:4318")
	}
	return c, nil
}

// part reads a percentage as a part of 1.
func part(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err == nil && (!percent || !(n >= 0 && n <= 100)) {
		err = strconv.ErrRange
	}
	return n / 100, err
}
