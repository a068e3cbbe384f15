package push

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/test/e2e"
)

// hostileBodies are requests around archives that are none of a form.
var hostileBodies = []struct {
	name   string
	kind   string // Content-Type
	length int64  // what the header says; 0: what is true
	body   string
	status int
	want   string
}{
	{"no form", "application/json", 0, `{}`, 422, `must be a multipart/form-data body with the part 'bits'`},
	{"too large", "multipart/form-data; boundary=b", 2 << 30, ``, 413, `The upload is larger than 1073741824 bytes`},
	{"cut in a header", "multipart/form-data; boundary=b", 0, "--b\r\nContent-Dis", 400, `the multipart body is broken`},
	{"cut in a file", "multipart/form-data; boundary=b", 0, part("bits") + "PK", 400, `the multipart body is broken`},
	{"shorter than it says", "multipart/form-data; boundary=b", 1 << 20, part("bits") + "PK", 400, `the multipart body is broken`},
	{"two files", "multipart/form-data; boundary=b", 0, part("bits") + "PK\r\n" + part("bits") + "PK\r\n--b--\r\n", 422, `has the part 'bits' twice`},
	{"no file", "multipart/form-data; boundary=b", 0, part("other") + "PK\r\n--b--\r\n", 422, `holds no files|must be uploaded as 'bits'`},
	{"empty file", "multipart/form-data; boundary=b", 0, part("bits") + "\r\n--b--\r\n", 422, `is not a valid zip file|cannot be empty`},
}

// part begins the part of a form that is a file.
func part(name string) string {
	return fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=%q; filename=\"a.tgz\"\r\n\r\n", name)
}

func TestHostileBodies(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	for _, u := range uploadTargets(d) {
		for _, c := range hostileBodies {
			t.Run(u.name+" "+c.name, func(t *testing.T) {
				d := d.On(t)
				before := files(d)
				length := c.length
				if length == 0 {
					length = int64(len(c.body))
				}
				status, text := rawPost(d, u.path+"/upload", c.kind, length, c.body)
				if status != c.status || !regexp.MustCompile(c.want).MatchString(text) {
					t.Errorf("got %d %s; want %d with %q", status, text, c.status, c.want)
				}
				if got := state(d, u.path); got != "AWAITING_UPLOAD" {
					t.Errorf("got state %s; want AWAITING_UPLOAD", got)
				}
				if diff := cmp.Diff(before, files(d)); diff != "" {
					t.Errorf("files (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// rawPost sends a request that need not be a right one, and no more.
func rawPost(d *e2e.Daemon, path, kind string, length int64, body string) (status int, text string) {
	d.T.Helper()
	conn, err := net.Dial("tcp", d.Addr)
	if err != nil {
		d.T.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, d.Client().Token, kind, length)
	if _, err := io.Copy(conn, strings.NewReader(head+body)); err != nil {
		d.T.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		d.T.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		d.T.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		d.T.Fatal(err)
	}
	return res.StatusCode, string(answer)
}
