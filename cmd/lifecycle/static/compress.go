package static

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// Bounds in bytes: smaller files fit a packet anyhow, larger ones are sent as
// they are, and all that is kept together stays far below an app's memory.
const (
	compressMin  = 1 << 10
	compressMax  = 4 << 20
	compressKept = 8 << 20
)

// compressedFiles keeps files gzipped once. The zero value is empty.
type compressedFiles struct {
	mu    sync.Mutex
	files map[string]compressedFile
	size  int
}

type compressedFile struct {
	tag  string // of the contents that were compressed
	data []byte
}

// get returns the gzipped contents of f, which is open at its start, has size
// bytes and a tag that changes with them. It returns false, and f again at
// its start, when compressing is not worth it.
func (c *compressedFiles) get(name, tag string, f io.ReadSeeker, size int64) ([]byte, bool) {
	if size < compressMin || size > compressMax {
		return nil, false
	}
	c.mu.Lock()
	kept, ok := c.files[name]
	c.mu.Unlock()
	if ok && kept.tag == tag {
		return kept.data, kept.data != nil
	}
	data, err := squeeze(f, size)
	if err == nil && int64(len(data)) < size {
		c.put(name, compressedFile{tag, data})
		return data, true
	}
	c.put(name, compressedFile{tag: tag})
	_, _ = f.Seek(0, io.SeekStart)
	return nil, false
}

func (c *compressedFiles) put(name string, f compressedFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil || c.size+len(f.data) > compressKept {
		c.files, c.size = map[string]compressedFile{}, 0
	}
	c.size += len(f.data) - len(c.files[name].data)
	c.files[name] = f
}

func squeeze(r io.Reader, size int64) ([]byte, error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(z, io.LimitReader(r, size)); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(buf.Bytes()), nil
}
