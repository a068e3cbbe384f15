package api

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A client that sends its body slowly keeps no other client from writing.
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
	case <-time.After(time.Minute):
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

// An upload that breaks off leaves nothing, and can be made again.
func TestAnUploadThatBreaksOff(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	for _, c := range []struct {
		path, name string
		data       []byte
		status     int
	}{
		{"/v3/packages/package-2/upload", "a.zip", zipOf(t, "a", "b"), 200},
		{"/v3/droplets/droplet-3/upload", "d.tgz", tgzOf(t, "app/run", "x"), 202},
		{"/v3/buildpacks/buildpack-1/upload", "b.zip", zipOf(t, "bin/compile", "x"), 202},
	} {
		body, send := io.Pipe()
		m := multipart.NewWriter(send)
		go func() {
			part, err := m.CreateFormFile("bits", c.name)
			if err == nil {
				_, err = part.Write(c.data[:len(c.data)/2])
			}
			send.CloseWithError(errors.Join(err, errors.New("the client is gone")))
		}()
		req, err := http.NewRequest("POST", w.url+c.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", m.FormDataContentType())
		req.Header.Set("Authorization", "bearer "+w.token("admin"))
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			t.Errorf("%s: got %s; want no answer", c.path, res.Status)
		}
		if got := w.upload("admin", c.path, c.name, c.data); got.status != c.status {
			t.Errorf("%s again: got %d %s; want %d", c.path, got.status, got.text, c.status)
		}
	}
	w.server.Close() // waits for what is under way
	left, err := os.ReadDir(filepath.Join(w.dir, "blobs", "tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
