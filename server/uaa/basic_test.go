package uaa

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"cupola/store"
)

// A user's name and password do for each request, until the password is another one.
func TestBasicAuthentication(t *testing.T) {
	u, _ := start(t)
	h := u.Basic(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := bearerToken(r)
		id, err := u.Verify(r.Context(), token)
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(id.Username + " " + token))
	}), func(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) })
	ask := func(name, password string) (int, string) {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		if name != "" {
			r.SetBasicAuth(name, password)
		}
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	status, first := ask("admin", "pw")
	if status != http.StatusOK || len(first) < len("admin ")+100 || first[:6] != "admin " {
		t.Fatalf("got %d %s", status, first)
	}
	if status, again := ask("admin", "pw"); status != http.StatusOK || again != first {
		t.Errorf("the second request got %d and another token", status)
	}
	if status, why := ask("admin", "wrong"); status != http.StatusUnauthorized || why != "Bad credentials\n" {
		t.Errorf("with another password: got %d %s", status, why)
	}
	if status, _ := ask("", ""); status != http.StatusTeapot {
		t.Errorf("without any: got %d; the next handler decides", status)
	}
	err := u.store.Write(t.Context(), func(tx *store.Tx) error {
		admin, err := userNamed(tx, "admin")
		if err != nil {
			return err
		}
		changed, err := bcrypt.GenerateFromPassword([]byte("changed"), cost)
		admin.PasswordHash = string(changed)
		if err != nil {
			return err
		}
		return store.Users.Update(tx, admin)
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := ask("admin", "pw"); status != http.StatusUnauthorized {
		t.Errorf("with the password of before: got %d", status)
	}
	if status, _ := ask("admin", "changed"); status != http.StatusOK {
		t.Errorf("with the new password: got %d", status)
	}
	for range lockoutFailures {
		ask("admin", "wrong")
	}
	if status, why := ask("admin", "wrong"); status != http.StatusUnauthorized || why == "Bad credentials\n" {
		t.Errorf("after many failures: got %d %s", status, why)
	}
}
