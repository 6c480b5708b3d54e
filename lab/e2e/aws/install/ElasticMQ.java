import org.elasticmq.rest.sqs.SQSRestServerBuilder;

/** Starts ElasticMQ in memory, on loopback only, until standard input ends. */
class ElasticMQ {
    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        SQSRestServerBuilder.withInterface("127.0.0.1")
                .withPort(port)
                .withServerAddress(new org.elasticmq.NodeAddress("http", "127.0.0.1", port, ""))
                .start()
                .waitUntilStarted();
        while (System.in.read() >= 0) {
        }
        System.exit(0);
    }
}
