// Package h2 is the server's side of HTTP/2 connections (RFC 9113), made for a
// proxy of small messages. One goroutine reads a connection, each request has one
// for as long as it is answered, and what all of them send is gathered and written
// at once. golang.org/x/net/http2 parses the frames and hpack the headers.
//
// A request is given to Config.Serve as a Stream. Stream.ServeHTTP answers it by an
// http.Handler.
//
// What a client can make the server keep or do is bounded: the streams that are
// served, also those that it has reset (CVE-2023-44487); the size of heads, in one
// frame or in many; frames that are answered but not taken; frames that change
// nothing; bodies, by flow control; and how long it may take for a head, or to take
// more of an answer.
package h2
