package api

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client that sends its body slowly keeps nobody else from writing.
func TestASlowBodyHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	body, send := io.Pipe()
	req, err := http.NewRequest("PATCH", w.url+"/v3/apps/app-1", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+w.token("admin"))
	answered := make(chan int, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	send.Write([]byte(`{"name": `)) // returns when the client has begun to send
	others := make(chan int, 1)
	go func() {
		for range 20 { // one of them comes after the slow request at any rate
			if got := w.ask("admin", "POST", "/v3/apps/app-1/actions/start", "", ""); got.status != 200 {
				others <- got.status
				return
			}
		}
		others <- 200
	}()
	select {
	case got := <-others:
		if got != 200 {
			t.Errorf("got %d; want 200", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("others wait for the slow client")
	}
	io.WriteString(send, `"slow"}`)
	send.Close()
	if got := <-answered; got != 200 {
		t.Errorf("the slow request: got %d; want 200", got)
	}
}

func TestUploadsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	send := func(field string, size int) answer {
		var b bytes.Buffer
		m := multipart.NewWriter(&b)
		if err := m.WriteField(field, "[]"+strings.Repeat(" ", size)); err != nil {
			t.Fatal(err)
		}
		part, err := m.CreateFormFile("bits", "a.zip")
		if err != nil {
			t.Fatal(err)
		}
		part.Write(zipOf(t, "a", "b"))
		m.Close()
		return w.ask("space_developer", "POST", "/v3/packages/package-2/upload", b.String(), m.FormDataContentType())
	}
	if got := send("resources", maxResources); got.status != 422 || !strings.Contains(got.text, "Resources are larger than") {
		t.Errorf("got %d %s; want 422", got.status, got.text)
	}
	if got := send("unheard-of", 10); got.status != 200 {
		t.Errorf("got %d %s; want the unknown part to be passed over", got.status, got.text)
	}
}
