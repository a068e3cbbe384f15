package api

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// A user who has very many requests under way leaves room for others.
func TestRequestsOfAUserAreBounded(t *testing.T) {
	w := newWorld(t)
	const user = "user-space_developer"
	taken := 0
	for w.slots.Take(user) {
		taken++
	}
	if taken != w.slots.Limit()/2 {
		t.Errorf("a user gets %d of %d", taken, w.slots.Limit())
	}
	many := detail(10015, "Too many requests of this user are under way: try again when some of them have been answered")
	w.run(t, []step{
		{as: "space_developer", method: "GET", path: "/v3/apps", status: 503, want: many},
		{as: "space_manager", method: "GET", path: "/v3/apps", status: 200},
	})
	for range taken {
		w.slots.Put(user)
	}
	w.run(t, []step{{as: "space_developer", method: "GET", path: "/v3/apps", status: 200}})
	if n := w.slots.Used(); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}

// A user who has many answers held gets further ones at once.
func TestHeldAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	n := w.slots.Limit() / 4 // half of what may be held
	var held []<-chan polled
	for range n {
		held = append(held, w.poll(t.Context(), "/v3/builds/build-9"))
	}
	for end := time.Now().Add(holdFor / 2); w.api.held.Used() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d answers are held", w.api.held.Used(), n)
		}
	}
	if got := within(t, "one more", w.poll(t.Context(), "/v3/builds/build-9")); got != (polled{state: "STAGING"}) {
		t.Errorf("got %+v", got)
	}
	if !w.api.held.Take("another") {
		t.Error("another user's answer cannot be held")
	}
	w.write(func(tx *store.Tx) error {
		b, err := store.Builds.Get(tx, "build-9")
		if err != nil {
			return err
		}
		b.State = cf.BuildStaged
		return store.Builds.Update(tx, b)
	})
	for _, one := range held {
		if got := within(t, "a held one", one); got != (polled{state: "STAGED"}) {
			t.Errorf("got %+v", got)
		}
	}
}

// A user's uploads come by turns: those that send slowly hold up no other user.
func TestUploadsTakeTurns(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	var slow []*io.PipeWriter
	ended := make(chan int, maxUserUploads+1)
	for range maxUserUploads + 1 {
		body, send := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v3/packages/package-2/upload", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		req.Header.Set("Authorization", "bearer "+w.token("admin"))
		go func() {
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				ended <- 0
				return
			}
			res.Body.Close()
			ended <- res.StatusCode
		}()
		_, _ = io.WriteString(send, "--b\r\n") // returns when the client has begun to send
		slow = append(slow, send)
	}
	if got := w.upload("space_developer", "/v3/packages/package-2/upload", "a.zip", zipOf(t, "a", "b")); got.status != 200 {
		t.Errorf("another user: got %d %s", got.status, got.text)
	}
	for _, send := range slow {
		_, _ = io.WriteString(send, "--b--\r\n")
		send.Close()
	}
	for range slow {
		if got := <-ended; got != 400 { // it has its bits by now, or they were no form
			t.Errorf("got %d", got)
		}
	}
}

// Who sends much too much gets an answer.
func TestLargeBodiesAreRefused(t *testing.T) {
	w := newWorld(t)
	large := `{"name": "` + strings.Repeat("x", 3<<20) + `"}`
	for _, path := range []string{"/v3/apps", "/v3/routes"} {
		if got := w.ask("admin", "POST", path, large, ""); got.status != 413 || !strings.Contains(got.text, "The request body is larger than 2097152 bytes") {
			t.Errorf("%s: got %d %.200s", path, got.status, got.text)
		}
	}
}
