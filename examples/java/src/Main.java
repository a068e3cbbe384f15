import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/** A web app with nothing but the JDK. */
public class Main {
    private static final AtomicLong visits = new AtomicLong();

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Main::answer);
        // SIGTERM: finish the requests in flight.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(5)));
        server.start();
        System.out.println("listening on port " + port);
    }

    private static void answer(HttpExchange exchange) throws IOException {
        switch (exchange.getRequestURI().getPath()) {
            case "/" -> send(exchange, 200, greeting());
            case "/health" -> send(exchange, 200, "ok");
            case "/crash" -> {
                System.err.println("was asked to crash");
                send(exchange, 200, "crashing");
                Runtime.getRuntime().halt(1);
            }
            default -> send(exchange, 404, "not found");
        }
    }

    private static String greeting() {
        String index = System.getenv().getOrDefault("CF_INSTANCE_INDEX", "0");
        long heap = Runtime.getRuntime().maxMemory() >> 20;
        return "hello from hello-java, instance " + index + ", visit " + visits.incrementAndGet() + ", Java " + Runtime.version().feature() + ", heap " + heap + "M";
    }

    private static void send(HttpExchange exchange, int status, String text) throws IOException {
        byte[] body = (text + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
