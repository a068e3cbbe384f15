package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"cupola/server/bulkhead"
	"cupola/store"
	"cupola/store/cf"
)

// How many calls are under way at once. One space gets half of them when it is alone.
const maxCalls = 64

// pause is how long a call that finds no room waits before it looks again.
const pause = 200 * time.Millisecond

// Caller makes the requests of calls: jobs of apps that are an HTTP request.
type Caller struct {
	store   *store.Store
	network Network
	room    *bulkhead.Share[string] // by space
}

// NewCaller makes a Caller.
func NewCaller(s *store.Store, n Network) *Caller {
	return &Caller{s, n, bulkhead.NewShare[string](maxCalls, 1)}
}

// maxAnswer is how much of an answer is read; bytes.
const maxAnswer = 64 << 10

// Call makes a POST request without a body, as the scheduler does, and says how it was
// answered, like "200 OK". An answer of another status than 2xx is an error with its first
// line, and so is the cause of ctx if that ended. Redirects are not followed: the next request
// would not be the one that was asked for.
func (c *Caller) Call(ctx context.Context, spaceGUID string, call *cf.AppJob) (string, error) {
	for !c.room.Take(spaceGUID) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", fmt.Errorf("%w, while it waited for other calls to end", context.Cause(ctx))
		}
	}
	defer c.room.Put(spaceGUID)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("User-Agent", "cupola-scheduler")
	if call.AuthHeader != "" {
		request.Header.Set("Authorization", call.AuthHeader)
	}
	client, err := c.client(ctx, spaceGUID, call.URL)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	default:
		return "", withoutURL(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // it was answered
		return answer.Status, nil
	}
	return "", fmt.Errorf("answered %s%s", answer.Status, excerpt(answer.Body))
}

func (c *Caller) client(ctx context.Context, spaceGUID, url string) (*http.Client, error) {
	var rules *Rules
	err := c.store.Read(ctx, func(tx *store.Tx) (err error) {
		rules, err = Of(tx, spaceGUID)
		return err
	})
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if strings.HasPrefix(strings.ToLower(url), "https:") && c.network.RootCAs != nil {
		trust.RootCAs = c.network.RootCAs()
	}
	return &http.Client{
		Transport:     &http.Transport{DialContext: rules.Dial(c.network), DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer, TLSClientConfig: trust},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// withoutURL is an error without the URL, which can have a secret in its query, and
// without the address of the machine's name server.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("lookup %s: %s", e.Name, e.Err)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// maxExcerpt is how much of an answer's first line an error has; bytes.
const maxExcerpt = 200

// excerpt is the first line of an answer, after a colon.
func excerpt(body io.Reader) string {
	line, _, _ := bufio.NewReader(io.LimitReader(body, maxExcerpt)).ReadLine() // what came before an error will do
	text := strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(line), "")))
	if text == "" {
		return ""
	}
	return ": " + text
}
