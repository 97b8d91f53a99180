import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Producers that commit one transaction after the other, a thread each, and print as one line of JSON what came of it.
 *
 * Arguments: bootstrap, topic, transactional id prefix, producers, records of a transaction, bytes of a value, seconds of
 * warm-up, seconds measured. A transaction counts as measured when it began behind the warm-up and its commit returned.
 *
 * Each is flushed before it is committed. Left to itself, the producer's thread looks whether batches are left, then takes
 * EndTxn from its queue; a transaction that begins, sends and commits between the two is ended without its batch, which
 * any broker answers with INVALID_TXN_STATE (kafka-clients 4.3.1: one of 40,000 on Apache Kafka).
 */
public class TransactionLoad implements Runnable {
    private final KafkaProducer producer;
    private final String topic;
    private final int records;
    private final byte[] value;
    private final long warmNanos;
    private final long measuredNanos;
    private final CountDownLatch ready;
    private long committed = 0;
    private long measured = 0;
    private long tookNanos = 0;
    private Throwable failure = null;

    private TransactionLoad(String[] args, String transactionalId, CountDownLatch ready) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("transactional.id", transactionalId);
        properties.put("acks", "all");
        properties.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        properties.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        this.producer = new KafkaProducer(properties);
        this.topic = args[1];
        this.records = Integer.parseInt(args[4]);
        this.value = new byte[Integer.parseInt(args[5])];
        this.warmNanos = (long) (Double.parseDouble(args[6]) * 1e9);
        this.measuredNanos = (long) (Double.parseDouble(args[7]) * 1e9);
        this.ready = ready;
    }

    public void run() {
        try {
            this.producer.initTransactions();
            this.ready.countDown();
            this.ready.await();
            this.commitFor(this.warmNanos);
            long began = System.nanoTime();
            this.measured = this.commitFor(this.measuredNanos);
            this.tookNanos = System.nanoTime() - began;
            this.producer.close();
        } catch (Throwable error) {
            this.failure = error;
            this.ready.countDown();
        }
    }

    private long commitFor(long nanos) {
        long until = System.nanoTime() + nanos;
        long count = 0;
        while (System.nanoTime() < until) {
            this.producer.beginTransaction();
            for (int number = 0; number < this.records; number++) {
                this.producer.send(new ProducerRecord(this.topic, this.value));
            }
            this.producer.flush();
            this.producer.commitTransaction();
            count++;
        }
        this.committed += count;
        return count;
    }

    public static void main(String[] args) throws Exception {
        int producers = Integer.parseInt(args[3]);
        CountDownLatch ready = new CountDownLatch(producers);
        TransactionLoad[] loads = new TransactionLoad[producers];
        Thread[] threads = new Thread[producers];
        for (int number = 0; number < producers; number++) {
            loads[number] = new TransactionLoad(args, args[2] + "-" + number, ready);
            threads[number] = new Thread(loads[number]);
        }
        for (int number = 0; number < producers; number++) {
            threads[number].start();
        }
        long committed = 0;
        double rate = 0;
        for (int number = 0; number < producers; number++) {
            threads[number].join();
            if (loads[number].failure != null) {
                loads[number].failure.printStackTrace();
                System.exit(1);
            }
            committed += loads[number].committed;
            rate += loads[number].measured * 1e9 / loads[number].tookNanos;
        }
        System.out.println("{\"per_s\": " + rate + ", \"committed\": " + committed + "}");
        System.exit(0);
    }
}
