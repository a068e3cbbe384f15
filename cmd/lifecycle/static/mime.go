package static

import (
	"path"
	"strings"
)

// types are the media types by extension. The table is our own so that an app
// is served alike on every stack, whatever its /etc/mime.types says.
var types = map[string]string{
	".atom": "application/atom+xml", ".avif": "image/avif", ".bmp": "image/bmp", ".css": "text/css; charset=utf-8",
	".csv": "text/csv; charset=utf-8", ".eot": "application/vnd.ms-fontobject", ".gif": "image/gif",
	".gz": "application/gzip", ".htm": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8",
	".ico": "image/x-icon", ".jar": "application/java-archive", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
	".js": "text/javascript; charset=utf-8", ".json": "application/json", ".map": "application/json",
	".md": "text/markdown; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".mp3": "audio/mpeg",
	".mp4": "video/mp4", ".ogg": "audio/ogg", ".otf": "font/otf", ".pdf": "application/pdf", ".png": "image/png",
	".rss": "application/rss+xml", ".svg": "image/svg+xml", ".tar": "application/x-tar", ".ttf": "font/ttf",
	".txt": "text/plain; charset=utf-8", ".wasm": "application/wasm", ".wav": "audio/wav", ".webm": "video/webm",
	".webmanifest": "application/manifest+json", ".webp": "image/webp", ".woff": "font/woff", ".woff2": "font/woff2",
	".xhtml": "application/xhtml+xml", ".xml": "text/xml; charset=utf-8", ".yaml": "application/yaml",
	".yml": "application/yaml", ".zip": "application/zip",
}

// compressed are the types besides text/* that gain from compression.
var compressed = []string{
	"application/atom+xml", "application/json", "application/manifest+json", "application/rss+xml",
	"application/vnd.ms-fontobject", "application/wasm", "application/xhtml+xml", "application/yaml",
	"font/otf", "font/ttf", "image/bmp", "image/svg+xml", "image/x-icon",
}

// contentType is never empty, so that nothing is guessed from contents.
func contentType(name string) string {
	if t, ok := types[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return "application/octet-stream"
}
