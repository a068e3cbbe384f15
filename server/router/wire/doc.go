// Package wire reads HTTP/1.1 as bytes, without allocating for each header: the
// heads of plain requests and answers, and the framing of an answer's body.
//
// It refuses nothing. A head that another server might understand differently, or
// that asks for more than one answer to one request, is Odd: net/http reads it,
// and answers it as it always does.
package wire
