package e2e

import (
	"archive/zip"
	"bufio"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
)

// SendBits uploads an archive under a file name to a resource, with a list of
// known files unless resources is "".
func (d *Daemon) SendBits(resource, name, resources string, write func(io.Writer) error) (status int, text string) {
	d.T.Helper()
	f, err := os.Create(filepath.Join(d.T.TempDir(), name))
	if err != nil {
		d.T.Fatal(err)
	}
	defer f.Close()
	form := multipart.NewWriter(f)
	if resources != "" {
		if err := form.WriteField("resources", resources); err != nil {
			d.T.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("bits", name)
	if err != nil {
		d.T.Fatal(err)
	}
	buffered := bufio.NewWriterSize(part, 1<<20)
	for _, step := range []func() error{func() error { return write(buffered) }, buffered.Flush, form.Close} {
		if err := step(); err != nil {
			d.T.Fatal(err)
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		d.T.Fatal(err)
	}
	return d.Post(resource+"/upload", form.FormDataContentType(), f)
}

// AddBuildpack uploads an admin buildpack, the last in the order.
func (d *Daemon) AddBuildpack(name string, files map[string]string) {
	d.T.Helper()
	var b struct{ GUID string }
	d.API("POST", "/v3/buildpacks", Doc{"name": name, "position": 99}, &b)
	d.SendBuildpack(b.GUID, name, files)
}

// SendBuildpack uploads a buildpack's files, all of them executable.
func (d *Daemon) SendBuildpack(guid, name string, files map[string]string) {
	d.T.Helper()
	status, text := d.SendBits("/v3/buildpacks/"+guid, name+".zip", "", func(w io.Writer) error {
		z := zip.NewWriter(w)
		for name, script := range files {
			header := &zip.FileHeader{Name: name}
			header.SetMode(0o755)
			f, err := z.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, script); err != nil {
				return err
			}
		}
		return z.Close()
	})
	if status != 202 {
		d.T.Fatalf("upload of buildpack %s: got %d %s; want 202", name, status, text)
	}
}

// Post sends a body of some media type as admin.
func (d *Daemon) Post(path, kind string, body io.Reader) (status int, text string) {
	d.T.Helper()
	c := d.Client()
	req, err := http.NewRequest("POST", c.URL(path), body)
	if err != nil {
		d.T.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "bearer "+c.Token)
	res, err := c.HTTP.Do(req)
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
