package osb

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"cupola/runtime/guid"
)

// version is the API version that requests to brokers declare.
const version = "2.17"

const (
	// defaultTimeout is Cloud Controller's broker_client_timeout_seconds.
	defaultTimeout = 60 * time.Second
	// maxAnswer bounds an answer's body; bytes.
	maxAnswer = 8 << 20
)

// Config is what a Client is made of; its zero value will do.
type Config struct {
	Timeout time.Duration         // of a request and its answer; 0 is 60 s
	APIInfo string                // where brokers find the platform's API: X-Api-Info-Location
	RootCAs func() *x509.CertPool // asked for each connection; nil: the system's
}

// Client asks brokers. It is safe for concurrent use.
type Client struct{ config Config }

// New makes a Client.
func New(c Config) *Client {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return &Client{c}
}

// Broker is whom to ask.
type Broker struct {
	URL, Username, Password string
	// Dial connects to the broker; nil: anywhere.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// request is one request to a broker.
type request struct {
	method, path string
	query        url.Values
	body         any
	user         string // GUID of the user who caused the request, or ""
}

// answer is what a broker answered.
type answer struct {
	status int
	header http.Header
	body   []byte
	object map[string]json.RawMessage // the body as an object; nil when it is none
}

// do makes a request. Redirects are not followed: they could lead credentials
// and requests anywhere.
func (c *Client) do(ctx context.Context, b Broker, r request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := c.request(ctx, b, r)
	if err != nil {
		return nil, failed(err, r, false)
	}
	res, err := c.transport(b).RoundTrip(req)
	if err != nil {
		return nil, failed(err, r, sent.Load())
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, failed(err, r, true)
	}
	if len(body) > maxAnswer {
		return nil, &Error{Name: Malformed, Status: res.StatusCode, Sent: true,
			Detail: "The service broker returned an invalid response: the body is larger than 8388608 bytes"}
	}
	return newAnswer(res.StatusCode, res.Header, body), nil
}

func newAnswer(status int, header http.Header, body []byte) *answer {
	a := &answer{status: status, header: header, body: body}
	if tooDeep(body) || json.Unmarshal(body, &a.object) != nil {
		a.object = nil
	}
	return a
}

func (c *Client) request(ctx context.Context, b Broker, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	address := strings.TrimSuffix(b.URL, "/") + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(b.Username, b.Password)
	h := req.Header
	h.Set("X-Broker-API-Version", version)
	h.Set("X-Broker-API-Request-Identity", guid.New())
	h.Set("Accept", "application/json")
	h.Set("User-Agent", "cupola")
	if c.config.APIInfo != "" {
		h.Set("X-Api-Info-Location", c.config.APIInfo)
	}
	if r.user != "" {
		h.Set("X-Broker-API-Originating-Identity", identity(r.user))
	}
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	return req, nil
}

// identity is the platform's name and whom it speaks for.
func identity(user string) string {
	text, err := json.Marshal(map[string]string{"user_id": user})
	if err != nil {
		panic(err) // strings marshal
	}
	return "cloudfoundry " + base64.StdEncoding.EncodeToString(text)
}

// transport makes a connection for one request: each broker may be reached in
// its own way only.
func (c *Client) transport(b Broker) *http.Transport {
	dial := b.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if strings.HasPrefix(strings.ToLower(b.URL), "https:") && c.config.RootCAs != nil {
		trust.RootCAs = c.config.RootCAs()
	}
	return &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: trust}
}
